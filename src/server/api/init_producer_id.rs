//! InitProducerId (22), versions 0 to 5 (KIP-98, KIP-360), for producers that are idempotent only.
//!
//! - Each id is given out once, whatever crashes: ids come from blocks that the metadata log has
//!   durably reserved.
//! - A producer that names an id and an epoch gets a new id all the same, as in Kafka, where only
//!   transactional producers keep theirs.
//!
//! Absent: transactions. A transactional id is answered with UNSUPPORTED_VERSION, which clients
//! take for final, instead of an id with which transactions would begin and never end.

use crate::base::error_code::ErrorCode;
use crate::base::ids::{ProducerEpoch, ProducerId};
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: InitProducerIdRequest,
) -> InitProducerIdResponse {
    if let Err(code) = check(&request) {
        return refusal(code);
    }
    match context.control().next_producer_id().await {
        Ok(producer_id) => InitProducerIdResponse {
            producer_id,
            producer_epoch: ProducerEpoch(0),
            ..InitProducerIdResponse::default()
        },
        Err(fault) => refusal(fault.code()),
    }
}

/// Whether the request may have an id.
pub fn check(request: &InitProducerIdRequest) -> Result<(), ErrorCode> {
    let has_id = request.producer_id != ProducerId::NONE;
    let has_epoch = request.producer_epoch != ProducerEpoch::NONE;
    match request.transactional_id.as_deref() {
        _ if has_id != has_epoch => Err(ErrorCode::INVALID_REQUEST),
        Some("") => Err(ErrorCode::INVALID_REQUEST),
        Some(_) => Err(ErrorCode::UNSUPPORTED_VERSION),
        None => Ok(()),
    }
}

fn refusal(error_code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse {
        error_code,
        producer_id: ProducerId::NONE,
        producer_epoch: ProducerEpoch::NONE,
        ..InitProducerIdResponse::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_idempotent_producers_get_ids() {
        let code = |transactional_id: Option<&str>, id: i64, epoch: i16| {
            let request = InitProducerIdRequest {
                transactional_id: transactional_id.map(str::to_owned),
                producer_id: ProducerId(id),
                producer_epoch: ProducerEpoch(epoch),
                ..InitProducerIdRequest::default()
            };
            check(&request).err().map_or(0, |code| code.0)
        };
        assert_eq!(code(None, -1, -1), 0);
        assert_eq!(code(None, 5, 1), 0);
        assert_eq!(code(None, 5, -1), 42);
        assert_eq!(code(None, -1, 5), 42);
        assert_eq!(code(Some(""), -1, -1), 42);
        assert_eq!(code(Some("t"), -1, -1), 35);
    }
}
