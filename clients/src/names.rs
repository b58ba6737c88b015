//! The names that the producers' records carry, `producer:partition:number`, packed into eight
//! bytes each, so that an hour's load is compared in memory.

use crate::Outcome;

/// No record.
pub const NOTHING: u64 = u64::MAX;
const NUMBER_BITS: u32 = 40;

/// The name at the head of a record's value, or alone; its partition must be `partition`.
pub fn pack(text: &str, partition: i32) -> Outcome<u64> {
    let name = text.split(' ').next().unwrap_or_default();
    let mut words = name.split(':');
    let mut word = || {
        words
            .next()
            .ok_or_else(|| format!("a foreign record: {name}"))
    };
    let (producer, at, number) = (word()?, word()?, word()?);
    let (producer, number): (u64, u64) = (producer.parse()?, number.parse()?);
    if at.parse::<i32>()? != partition || number >> NUMBER_BITS != 0 || producer >> 23 != 0 {
        return Err(format!("{name} in partition {partition}").into());
    }
    Ok(producer << NUMBER_BITS | number)
}

/// Producer and number.
pub fn unpack(name: u64) -> (u64, u64) {
    (name >> NUMBER_BITS, name & ((1 << NUMBER_BITS) - 1))
}

/// As messages print it.
pub fn told(name: u64) -> String {
    if name == NOTHING {
        return "nothing".to_owned();
    }
    let (producer, number) = unpack(name);
    format!("{producer}:{number}")
}
