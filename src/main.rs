//! The `coreline` command: reads settings, starts one executor per core, waits for shutdown.

fn main() {
    eprintln!(
        "coreline {}: nothing is served yet",
        env!("CARGO_PKG_VERSION")
    );
}
