//! One file per API key. The head of each states the versions served, the behaviour, the KIPs, and
//! what is not implemented.
//!
//! A handler is
//! `pub async fn handle(context: &RequestContext, header: &RequestHeader, request: XxxRequest) ->
//! XxxResponse`. Dispatch decodes the request and encodes the response; an unsupported version, an
//! undecodable body or bytes left over never reach a handler. Errors are fields of the response,
//! mapped from the layers' enums once, here. A handler runs on the connection's shard and reaches
//! the controller through `context.control()`, other shards through their inboxes; it must not hold
//! a `RefCell` borrow across an await. Handlers of pipelined requests of one connection run
//! concurrently, and their responses leave in request order.
