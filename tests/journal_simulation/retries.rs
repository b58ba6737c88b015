//! After every start: the last five batches of every producer are known, whatever ended the life
//! before. A retry of one of them is answered with the original's offsets and appends nothing.

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::BytesMut;
use coreline::base::ids::LeaderEpoch;
use coreline::io::now;
use coreline::log::{AppendContext, Log};

use crate::client::PATIENCE;
use crate::model::Entry;
use crate::payload::Payload;
use crate::world::World;

/// Batches of a producer that are known (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`).
const KNOWN_BATCHES: usize = 5;

/// Sends the last batches of every producer again, as the model has them.
pub async fn retry_known(world: &World, generation: u64, log: &Rc<Log>) -> Result<(), String> {
    let mut of_producer: BTreeMap<i64, Vec<(Payload, Entry)>> = BTreeMap::new();
    for (payload, entry) in world.model.borrow().contents(generation) {
        if let Some(producer) = payload.producer {
            let batches = of_producer.entry(producer.id).or_default();
            batches.push((payload, entry));
        }
    }
    let end = log.log_end_offset();
    // Of one that was cleaned the last batch of each producer is left for sure.
    let is_compacted = log.config().compacted;
    let found = world.model.borrow().log(generation).found.clone();
    for batches in of_producer.into_values() {
        let known_batches = if is_compacted { 1 } else { KNOWN_BATCHES };
        let known = batches.len().saturating_sub(known_batches);
        for (payload, entry) in &batches[known..] {
            if is_compacted && !found.contains(&entry.attempt) {
                continue;
            }
            retry(world, log, payload, entry).await?;
        }
    }
    if log.log_end_offset() != end {
        return Err(format!("retries moved a log's end from {end}"));
    }
    Ok(())
}

async fn retry(
    world: &World,
    log: &Rc<Log>,
    payload: &Payload,
    entry: &Entry,
) -> Result<(), String> {
    let batch = BytesMut::from(&payload.build()[..]);
    let epoch = LeaderEpoch(world.model.borrow().epoch);
    let context = AppendContext::client(epoch, now(), PATIENCE);
    let folder = log.identity().folder();
    match log.append(batch, context).await {
        Ok(answer)
            if answer.duplicate
                && (answer.base_offset.0, answer.last_offset.0) == (entry.base, entry.last) =>
        {
            world.stats.borrow_mut().retries_after_start += 1;
            Ok(())
        }
        answer => Err(format!(
            "{folder}: a retry of {entry:?} after the start was answered {answer:?}"
        )),
    }
}
