//! `coreline.cores`: how many shards, and on which CPUs.

use super::setting::list;

/// Most shards of one process; shard ids are 16-bit, and a journal is kept for each.
pub const CORES_MAX: usize = 1_024;

/// The operator's choice of cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cores {
    /// One shard on each CPU that the process may use.
    #[default]
    All,
    /// That many shards.
    Count(usize),
    /// One shard on each of these CPUs.
    Cpus(Vec<usize>),
}

impl Cores {
    /// Reads `all`, a number, or a list of CPUs and ranges that contains a comma or a dash.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text.eq_ignore_ascii_case("all") {
            return Ok(Self::All);
        }
        let range = format!("Must be a number from 1 to {CORES_MAX} or CPUs such as 0-3,6");
        if !text.contains(['-', ',']) {
            return match text.parse() {
                Ok(count) if (1..=CORES_MAX).contains(&count) => Ok(Self::Count(count)),
                _ => Err(range),
            };
        }
        let mut cpus = Vec::new();
        for item in list(text) {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let bounds = (first.trim().parse::<usize>(), last.trim().parse::<usize>());
            match bounds {
                (Ok(first), Ok(last)) if first <= last && last - first < CORES_MAX => {
                    cpus.extend(first..=last);
                }
                _ if item.is_empty() => {}
                _ => return Err(range),
            }
        }
        cpus.sort_unstable();
        cpus.dedup();
        if cpus.is_empty() || cpus.len() > CORES_MAX {
            return Err(range);
        }
        Ok(Self::Cpus(cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lists_are_told_apart() {
        assert_eq!(Cores::parse(" all "), Ok(Cores::All));
        assert_eq!(Cores::parse("2"), Ok(Cores::Count(2)));
        assert_eq!(Cores::parse("0-2,6"), Ok(Cores::Cpus(vec![0, 1, 2, 6])));
        assert_eq!(Cores::parse("3,"), Ok(Cores::Cpus(vec![3])));
        assert_eq!(Cores::parse("1024"), Ok(Cores::Count(CORES_MAX)));
        for wrong in ["0", "1025", "x", "3-1", "0-5000", "-1", ","] {
            assert!(Cores::parse(wrong).is_err(), "{wrong}");
        }
    }
}
