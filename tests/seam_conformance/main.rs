//! What every backend of the runtime seam must do, through the names that the rest of the house
//! uses. A backend is held against the whole list: files and directories, sockets, and tasks with
//! what wakes and ends them.

mod files;
mod sockets;
mod tasks;

use std::net::SocketAddr;

use coreline::io::{AlignedBuffer, OpenOptions, Runtime, RuntimeOptions};

/// A runtime of the backend under test.
fn runtime() -> Runtime {
    Runtime::start(RuntimeOptions::for_tests()).expect("the kernel allows io_uring")
}

/// Runs a test on the backend and checks that nothing is left behind.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = runtime();
    let value = runtime.block_on(future);
    let left = runtime.end();
    assert_eq!((left.timers, left.operations, left.handles), (0, 0, 0));
    value
}

fn scratch() -> tempfile::TempDir {
    // Not /tmp, which may be a tmpfs without direct I/O.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build folder is writable")
}

fn filled(len: usize, seed: u8) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::zeroed(len);
    for (index, byte) in buffer.iter_mut().enumerate() {
        *byte = (index as u8).wrapping_mul(31).wrapping_add(seed);
    }
    buffer
}

fn writable(direct: bool) -> OpenOptions {
    OpenOptions {
        write: true,
        create: true,
        direct,
        ..OpenOptions::default()
    }
}

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}
