//! Settings changed by request.

use coreline::base::error_code::ErrorCode;
use coreline::wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};

use crate::broker::Client;

pub const TOPIC: i8 = 2;
pub const BROKER: i8 = 4;

const SET: i8 = 0;
const DELETE: i8 = 1;

fn ask(client: &mut Client, kind: i8, name: &str, configs: Vec<AlterableConfig>) {
    let request = IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: kind,
            resource_name: name.to_owned(),
            configs,
        }],
        validate_only: false,
    };
    let response: IncrementalAlterConfigsResponse = client.ask(&request, 1);
    let code = response.responses[0].error_code;
    assert_eq!(code, ErrorCode::NONE, "{request:?}: {response:?}");
}

pub fn alter(client: &mut Client, kind: i8, name: &str, settings: &[(&str, &str)]) {
    let config = |(name, value): &(&str, &str)| AlterableConfig {
        name: (*name).to_owned(),
        config_operation: SET,
        value: Some((*value).to_owned()),
    };
    ask(client, kind, name, settings.iter().map(config).collect());
}

pub fn take_away(client: &mut Client, kind: i8, name: &str, settings: &[&str]) {
    let config = |name: &&str| AlterableConfig {
        name: (*name).to_owned(),
        config_operation: DELETE,
        value: None,
    };
    ask(client, kind, name, settings.iter().map(config).collect());
}
