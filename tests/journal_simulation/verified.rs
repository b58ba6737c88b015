//! Whatever a life leaves, `coreline log verify` calls it whole as long as nothing was damaged, and
//! writes nothing.

use std::path::Path;

use coreline::io::sim::SimRuntime;
use coreline::log::verify::{Problem, verify};

use crate::directories;
use crate::world::World;

/// Reads a directory as it stands between two lives.
pub fn check(world: &World, number: usize) -> Result<(), String> {
    let path = directories::path(world, number);
    if world.disk.list(&path).is_err() {
        // The start that should have made it was killed, before the folder itself was durable
        // perhaps, or its disk failed.
        return Ok(());
    }
    let mut runtime = SimRuntime::new(&world.disk, 1);
    let verified = runtime.block_on(async {
        let mut problems = Vec::new();
        let directory = verify(Path::new(&path), |report| problems.extend(report.problems));
        let directory = directory.await.map_err(|error| error.to_string())?;
        problems.extend(directory.problems);
        Ok::<_, String>(problems)
    });
    let problems = match verified {
        Ok(Ok(problems)) => problems,
        // Killed before there was anything.
        Ok(Err(what)) if what.contains("is no data directory") => return Ok(()),
        Ok(Err(what)) => return Err(format!("verify: {what}")),
        Err(crashed) => return Err(format!("verify: {crashed:?}")),
    };
    // Logs alone: there is no cluster here.
    let is_other = |problem: &Problem| problem.file.ends_with("meta.properties");
    match problems.iter().find(|problem| !is_other(problem)) {
        Some(problem) => Err(format!("called damaged: {problem:?}")),
        None => Ok(()),
    }
}
