//! DeleteTopics (`ControllerApis.deleteTopics`): each topic, by name or by id, is removed or
//! refused by itself. What is answered follows the request's order; Kafka shuffles it.

use std::collections::{HashMap, HashSet};

use super::{Decision, RECORDS_PER_OPERATION_MAX, Refusal};
use crate::base::error_code::ErrorCode;
use crate::base::ids::TopicId;
use crate::cluster::image::{Image, TopicImage};
use crate::cluster::quotas::mutations::Permits;
use crate::cluster::records::{MetadataRecord, RemoveTopicRecord};
use crate::wire::messages::delete_topics::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};

/// Decides a DeleteTopics request; `is_enabled` is `delete.topic.enable`. Before version 3 there is
/// no code of its own for a broker that deletes nothing.
#[must_use]
pub fn delete_topics(
    image: &Image,
    request: &DeleteTopicsRequest,
    version: i16,
    is_enabled: bool,
    permits: &mut Permits<'_>,
) -> Decision<DeleteTopicsResponse> {
    let named = request.topic_names.iter().map(|name| DeleteTopicState {
        name: Some(name.clone()),
        topic_id: TopicId::ZERO,
    });
    let states: Vec<DeleteTopicState> = named.chain(request.topics.iter().cloned()).collect();
    let mut asked = Asked::of(&states);
    let mut records = Vec::new();
    let mut responses = Vec::new();
    for state in &states {
        if !is_enabled {
            responses.push(answer(state, Some(disabled(version))));
            continue;
        }
        match resolve(image, state, &mut asked) {
            Ok(Some(topic)) => {
                if let Err(fault) = permits.take(topic.partitions.len()) {
                    responses.push(answer(&state_of(topic), Some(fault)));
                    continue;
                }
                records.push(MetadataRecord::RemoveTopic(RemoveTopicRecord {
                    topic_id: topic.id,
                }));
                responses.push(answer(&state_of(topic), None));
            }
            Ok(None) => {}
            Err((state, fault)) => responses.push(answer(&state, Some(fault))),
        }
    }
    if records.len() > RECORDS_PER_OPERATION_MAX {
        return too_many(&states);
    }
    let response = DeleteTopicsResponse {
        throttle_time_ms: permits.throttle_time_ms(),
        responses,
    };
    Decision { records, response }
}

/// A request that removes more than one batch holds removes nothing.
fn too_many(states: &[DeleteTopicState]) -> Decision<DeleteTopicsResponse> {
    let message = "Unable to perform excessively large batch operation.";
    let fault = Refusal::new(ErrorCode::POLICY_VIOLATION, message);
    let responses = (states.iter())
        .map(|state| answer(state, Some(fault.clone())))
        .collect();
    Decision {
        records: Vec::new(),
        response: DeleteTopicsResponse {
            throttle_time_ms: 0,
            responses,
        },
    }
}

fn state_of(topic: &TopicImage) -> DeleteTopicState {
    DeleteTopicState {
        name: Some(topic.name.to_string()),
        topic_id: topic.id,
    }
}

/// What a request asks for, and what of it has been answered.
struct Asked {
    names: HashMap<String, usize>,
    ids: HashMap<TopicId, usize>,
    answered: HashSet<(Option<String>, TopicId)>,
}

impl Asked {
    fn of(states: &[DeleteTopicState]) -> Self {
        let mut asked = Self {
            names: HashMap::new(),
            ids: HashMap::new(),
            answered: HashSet::new(),
        };
        for state in states {
            match &state.name {
                Some(name) if state.topic_id == TopicId::ZERO => {
                    *asked.names.entry(name.clone()).or_default() += 1;
                }
                None => *asked.ids.entry(state.topic_id).or_default() += 1,
                Some(_) => {}
            }
        }
        asked
    }

    /// Whether this is the first that is heard of it.
    fn is_first(&mut self, state: &DeleteTopicState) -> bool {
        self.answered.insert((state.name.clone(), state.topic_id))
    }
}

/// The topic to be removed; `None` when an earlier entry has answered for it already.
fn resolve<'a>(
    image: &'a Image,
    state: &DeleteTopicState,
    asked: &mut Asked,
) -> Result<Option<&'a TopicImage>, (DeleteTopicState, Refusal)> {
    let refuse = |code: ErrorCode, message: &str| Err((state.clone(), Refusal::new(code, message)));
    let invalid = ErrorCode::INVALID_REQUEST;
    let has_id = state.topic_id != TopicId::ZERO;
    let (topic, is_doubled) = match &state.name {
        Some(_) if has_id => {
            return refuse(invalid, "You may not specify both topic name and topic id.");
        }
        None if !has_id => return refuse(invalid, "Neither topic name nor id were specified."),
        _ if !asked.is_first(state) => return Ok(None),
        Some(name) => {
            if asked.names.get(name).is_some_and(|count| *count > 1) {
                return refuse(invalid, "Duplicate topic name.");
            }
            let Some(topic) = image.topics().by_name(name) else {
                let message = "This server does not host this topic-partition.";
                return refuse(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message);
            };
            (topic, asked.ids.contains_key(&topic.id))
        }
        None => {
            if asked
                .ids
                .get(&state.topic_id)
                .is_some_and(|count| *count > 1)
            {
                return refuse(invalid, "Duplicate topic id.");
            }
            let Some(topic) = image.topics().by_id(state.topic_id) else {
                let message = "This server does not host this topic ID.";
                return refuse(ErrorCode::UNKNOWN_TOPIC_ID, message);
            };
            (topic, asked.names.contains_key(&*topic.name))
        }
    };
    unless_doubled(topic, is_doubled, asked)
}

/// A topic named once and once more by its id is not removed, and answered for once.
fn unless_doubled<'a>(
    topic: &'a TopicImage,
    is_doubled: bool,
    asked: &mut Asked,
) -> Result<Option<&'a TopicImage>, (DeleteTopicState, Refusal)> {
    if !is_doubled {
        return Ok(Some(topic));
    }
    let state = state_of(topic);
    if !asked.is_first(&state) {
        return Ok(None);
    }
    let message = "The provided topic name maps to an ID that was already supplied.";
    Err((state, Refusal::new(ErrorCode::INVALID_REQUEST, message)))
}

fn disabled(version: i16) -> Refusal {
    let code = if version < 3 {
        ErrorCode::INVALID_REQUEST
    } else {
        ErrorCode::TOPIC_DELETION_DISABLED
    };
    Refusal::new(code, "Topic deletion is disabled.")
}

fn answer(state: &DeleteTopicState, fault: Option<Refusal>) -> DeletableTopicResult {
    let (error_code, error_message) = match fault {
        None => (ErrorCode::NONE, None),
        Some(fault) => (fault.code, Some(fault.message)),
    };
    DeletableTopicResult {
        name: state.name.clone(),
        topic_id: state.topic_id,
        error_code,
        error_message,
    }
}

#[cfg(test)]
#[path = "delete_topics_test.rs"]
mod delete_topics_test;
