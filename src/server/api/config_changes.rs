//! What AlterConfigs and IncrementalAlterConfigs have in common: log levels are changed here, the
//! rest is the controller's.

use crate::base::error_code::ErrorCode;
use crate::cluster::decide::Refusal;
use crate::cluster::decide::alter_configs::{Outcomes, ResourceChanges, preprocess};
use crate::cluster::image::ResourceType;
use crate::server::context::RequestContext;
use crate::server::loggers;

/// How one resource fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Altered {
    /// What it is.
    pub kind: ResourceType,
    /// Its name.
    pub name: String,
    /// Kafka's code.
    pub code: ErrorCode,
    /// What the user is told; `None` when all went well.
    pub message: Option<String>,
}

/// Makes the changes, or only looks whether they could be made. One answer a resource, in their
/// order.
pub async fn alter(
    context: &RequestContext,
    resources: Vec<ResourceChanges>,
    validate_only: bool,
) -> Vec<Altered> {
    let named: Vec<(ResourceType, String)> = (resources.iter())
        .map(|resource| (resource.kind, resource.name.clone()))
        .collect();
    let mut outcomes = preprocess(&resources);
    let mut of_controller = Vec::new();
    for (resource, outcome) in resources.into_iter().zip(&mut outcomes) {
        if outcome.is_err() {
            continue;
        }
        if resource.kind == ResourceType::BROKER_LOGGER {
            let node = context.image().node_id();
            *outcome = loggers::alter(node, &resource, validate_only);
        } else {
            of_controller.push((outcome, resource));
        }
    }
    let (slots, resources): (Vec<_>, Vec<_>) = of_controller.into_iter().unzip();
    for (slot, outcome) in slots
        .into_iter()
        .zip(ask(context, resources, validate_only).await)
    {
        *slot = outcome;
    }
    let told = |((kind, name), outcome): ((_, _), Result<(), Refusal>)| match outcome {
        Ok(()) => Altered {
            kind,
            name,
            code: ErrorCode::NONE,
            message: None,
        },
        Err(refusal) => Altered {
            kind,
            name,
            code: refusal.code,
            message: Some(refusal.message),
        },
    };
    named.into_iter().zip(outcomes).map(told).collect()
}

async fn ask(
    context: &RequestContext,
    resources: Vec<ResourceChanges>,
    validate_only: bool,
) -> Outcomes {
    if resources.is_empty() {
        return Outcomes::new();
    }
    let count = resources.len();
    let answer = context.control().alter_configs(resources, validate_only);
    answer.await.unwrap_or_else(|fault| {
        let refusal = Refusal::new(fault.code(), fault.to_string());
        vec![Err(refusal); count]
    })
}
