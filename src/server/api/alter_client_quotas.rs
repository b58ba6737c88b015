//! AlterClientQuotas (49), versions 0 to 1 (KIP-546): limits of users, clients and addresses.
//!
//! The controller decides ([`crate::cluster::decide::alter_quotas`]); the answer leaves when the
//! limits are durable and in force on every shard. Hosts' names are looked up before, on a thread
//! of their own, for the controller is not to wait for it; a name without an address is refused. A
//! connection has the limits of the address that it comes from: a name stands for the addresses
//! that it has when its limit is set and when the broker starts, all of them where Kafka takes the
//! first, and is in force as soon as the system has told them.

use std::net::{IpAddr, ToSocketAddrs};

use crate::io;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::alter_client_quotas::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, AlteredEntry,
};

/// Most names that one request has looked up; a further one counts as unknown.
const NAMES_LOOKED_UP_MAX: usize = 100;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: AlterClientQuotasRequest,
) -> AlterClientQuotasResponse {
    let entities: Vec<_> = (request.entries.iter())
        .map(|entry| entry.entity.clone())
        .collect();
    let unknown_hosts = unknown_hosts(&request).await;
    let answer = context
        .control()
        .alter_client_quotas(request, unknown_hosts);
    answer
        .await
        .unwrap_or_else(|fault| AlterClientQuotasResponse {
            throttle_time_ms: 0,
            entries: (entities.into_iter())
                .map(|entity| AlteredEntry {
                    error_code: fault.code(),
                    error_message: Some(fault.to_string()),
                    entity,
                })
                .collect(),
        })
}

/// The hosts of a request that have no address.
async fn unknown_hosts(request: &AlterClientQuotasRequest) -> Vec<String> {
    let parts = request.entries.iter().flat_map(|entry| &entry.entity);
    let hosts = parts.filter(|part| part.entity_type == "ip");
    let hosts = hosts.filter_map(|part| part.entity_name.as_ref());
    let is_name = |host: &&String| !host.is_empty() && host.parse::<IpAddr>().is_err();
    let mut names: Vec<String> = hosts.filter(is_name).cloned().collect();
    if names.is_empty() {
        return names;
    }
    names.sort_unstable();
    names.dedup();
    let asked = names.clone();
    let looked_up = io::run_on_pool(move || {
        let is_known = |host: &String| (host.as_str(), 0).to_socket_addrs().is_ok();
        let mut unknown: Vec<String> = (asked.iter().take(NAMES_LOOKED_UP_MAX))
            .filter(|host| !is_known(host))
            .cloned()
            .collect();
        unknown.extend(asked.into_iter().skip(NAMES_LOOKED_UP_MAX));
        unknown
    });
    looked_up.await.unwrap_or(names)
}
