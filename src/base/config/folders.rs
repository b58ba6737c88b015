//! Rules between the folders of the data.

use std::path::Path;

/// The first folder that lies within another, after that other; the same one twice is none. By
/// names alone, so that links are followed by whoever has followed them before.
#[must_use]
pub fn nested<'a>(folders: &[&'a Path]) -> Option<(&'a Path, &'a Path)> {
    let pairs = folders
        .iter()
        .flat_map(|outer| folders.iter().map(move |inner| (*outer, *inner)));
    let is_within = |(outer, inner): &(&Path, &Path)| {
        !outer.as_os_str().is_empty() && inner != outer && inner.starts_with(outer)
    };
    let mut nested = pairs.filter(is_within);
    nested.next()
}

/// What an operator reads of such a pair.
#[must_use]
pub fn nested_reason(outer: &Path, inner: &Path) -> String {
    format!(
        "{} lies within {}: a log directory holds folders of partitions alone; name folders beside \
         each other",
        inner.display(),
        outer.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_within_others_are_found_in_any_order() {
        let find = |names: &[&'static str]| {
            let folders: Vec<&Path> = names.iter().map(Path::new).collect();
            nested(&folders).map(|(outer, inner)| (outer.to_owned(), inner.to_owned()))
        };
        let pair = Some(("/a".into(), "/a/b/c".into()));
        assert_eq!(find(&["/a", "/a/b/c"]), pair);
        assert_eq!(find(&["/x", "/a/b/c", "/a/"]), pair);
        assert_eq!(find(&["/a", "/ab", "/b/a"]), None);
        assert_eq!(find(&["/a", ""]), None, "no name is another fault");
        assert_eq!(find(&["/a", "/a/"]), None, "twice is another fault");
        assert_eq!(
            find(&["data/1", "data"]),
            Some(("data".into(), "data/1".into()))
        );
    }
}
