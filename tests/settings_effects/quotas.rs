//! Settings of quotas: each changed, and its effect seen from outside.

use coreline::base::error_code::ErrorCode;
use coreline::wire::messages::alter_client_quotas::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, EntityData, EntryData, OpData,
};
use coreline::wire::messages::produce::ProduceResponse;
use coreline::wire::primitives::Float64;

use crate::broker::requests::{errors_of, produce};
use crate::broker::{Client, batch};
use crate::starts::{Process, create};

/// Limits every client.
fn limit(client: &mut Client, key: &str, value: f64) {
    let request = AlterClientQuotasRequest {
        entries: vec![EntryData {
            entity: vec![EntityData {
                entity_type: "client-id".to_owned(),
                entity_name: None,
            }],
            ops: vec![OpData {
                key: key.to_owned(),
                value: Float64(value),
                remove: false,
            }],
        }],
        validate_only: false,
    };
    let altered: AlterClientQuotasResponse = client.ask(&request, 1);
    assert_eq!(altered.entries[0].error_code, ErrorCode::NONE);
}

#[test]
fn so_much_may_be_used_at_once() {
    let told = |count: u32, seconds: u32| {
        let process = Process::start(&[
            &format!("quota.window.num={count}"),
            &format!("quota.window.size.seconds={seconds}"),
        ]);
        let mut client = process.connect();
        create(&mut client, "t", 1, 1);
        limit(&mut client, "producer_byte_rate", 10_000.0);
        let response: ProduceResponse = client.ask(&produce("t", -1, [(0, batch(1, 50_000))]), 9);
        assert_eq!(errors_of(&response), [ErrorCode::NONE]);
        response.throttle_time_ms
    };
    // Five seconds' worth, where one, ten and twenty are allowed.
    let of_one = told(2, 1);
    assert!((3_900..=4_100).contains(&of_one), "{of_one} ms");
    assert_eq!(told(11, 1), 0);
    assert_eq!(told(2, 20), 0);
}

#[test]
fn so_many_partitions_may_be_made_at_once() {
    let made = |count: u32, seconds: u32| {
        let process = Process::start(&[
            &format!("controller.quota.window.num={count}"),
            &format!("controller.quota.window.size.seconds={seconds}"),
        ]);
        let mut client = process.connect();
        limit(&mut client, "controller_mutation_rate", 1.0);
        create(&mut client, "a", 5, 1);
        create(&mut client, "b", 5, 1).0
    };
    // The second is refused where the first took more than there was.
    assert_eq!(made(2, 1), ErrorCode::THROTTLING_QUOTA_EXCEEDED);
    assert_eq!(made(11, 1), ErrorCode::NONE);
    assert_eq!(made(2, 20), ErrorCode::NONE);
}
