//! Operations that a client may perform, as bits (KIP-430; `AclOperation`). Nobody is refused
//! anything yet: what is answered is what Kafka answers without an authorizer.

/// Not asked for, or not known.
pub const OPERATIONS_OMITTED: i32 = i32::MIN;

/// READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
pub const TOPIC_OPERATIONS: i32 = bits(&[3, 4, 5, 6, 7, 8, 10, 11]);

/// READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
pub const GROUP_OPERATIONS: i32 = bits(&[3, 6, 8, 10, 11]);

/// CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE.
pub const CLUSTER_OPERATIONS: i32 = bits(&[5, 7, 8, 9, 10, 11, 12]);

const fn bits(mut operations: &[u32]) -> i32 {
    let mut all = 0;
    while let [first, rest @ ..] = operations {
        all |= 1 << *first;
        operations = rest;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_that_kafka_answers() {
        assert_eq!(TOPIC_OPERATIONS, 3_576);
        assert_eq!(CLUSTER_OPERATIONS, 8_096);
    }
}
