//! Sockets.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use coreline::io::{self, TaskClass, TcpListener, TcpStream};

use crate::{local, run};

async fn receive_exactly(stream: &TcpStream, len: usize) -> Vec<u8> {
    let mut all = BytesMut::with_capacity(len);
    while all.len() < len {
        let (count, back) = stream.receive(all).await;
        all = back;
        assert!(
            count.unwrap() > 0,
            "the stream ended after {} bytes",
            all.len()
        );
    }
    all.to_vec()
}

#[test]
fn sockets_carry_all_bytes_in_order() {
    run(async {
        let listener = TcpListener::bind(local(), 16).unwrap();
        let address = listener.local_address().unwrap();
        let server = io::spawn(TaskClass::Produce, async move {
            let (stream, peer) = listener.accept().await.unwrap();
            assert!(peer.ip().is_loopback());
            loop {
                let (count, buffer) = stream.receive(BytesMut::with_capacity(10_000)).await;
                if count.unwrap() == 0 {
                    break;
                }
                stream.send_vectored(vec![buffer.freeze()]).await.unwrap();
            }
        });
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_buffer_sizes(Some(16_384), Some(16_384)).unwrap();
        // Larger than all socket buffers, in more slices than one system call takes.
        let slices: Vec<Bytes> = (0..3_000u32)
            .map(|number| Bytes::from(number.to_le_bytes().repeat(1_000)))
            .chain([Bytes::new()])
            .collect();
        let expected: Vec<u8> = slices.iter().flatten().copied().collect();
        let sender = stream.clone();
        let sending = io::spawn(TaskClass::Produce, async move {
            sender.send_vectored(slices).await.unwrap();
            sender.finish();
        });
        let back = receive_exactly(&stream, expected.len()).await;
        assert!(back == expected);
        sending.await;
        server.await;
        let (count, _) = stream.receive(BytesMut::with_capacity(1)).await;
        assert_eq!(count.unwrap(), 0, "the peer has closed");
        stream.send_vectored(Vec::new()).await.unwrap();
    });
}

#[test]
fn shutdown_ends_a_receive_and_an_accept_under_way() {
    run(async {
        let listener = Rc::new(TcpListener::bind(local(), 16).unwrap());
        let stream = TcpStream::connect(listener.local_address().unwrap())
            .await
            .unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let reader = stream.clone();
        let receiving = io::spawn(TaskClass::Produce, async move {
            reader.receive(BytesMut::with_capacity(10)).await.0
        });
        let accepting = {
            let listener = Rc::clone(&listener);
            io::spawn(TaskClass::Produce, async move {
                listener.accept().await.is_err()
            })
        };
        io::sleep(Duration::from_millis(5)).await;
        stream.shutdown();
        listener.shutdown();
        assert_eq!(receiving.await.unwrap(), 0);
        assert!(accepting.await);
        let (count, _) = accepted.receive(BytesMut::with_capacity(1)).await;
        assert_eq!(count.unwrap(), 0);
    });
}

#[test]
fn listeners_share_a_port() {
    run(async {
        let first = TcpListener::bind(local(), 16).unwrap();
        let second = TcpListener::bind(first.local_address().unwrap(), 16).unwrap();
        assert_eq!(
            first.local_address().unwrap(),
            second.local_address().unwrap()
        );
        let refused = TcpListener::bind(SocketAddr::from(([192, 0, 2, 1], 0)), 16);
        assert!(refused.is_err(), "not an address of this machine");
    });
}

#[test]
fn a_dropped_receive_leaves_buffer_and_descriptor_to_the_driver() {
    run(async {
        let listener = TcpListener::bind(local(), 16).unwrap();
        let stream = TcpStream::connect(listener.local_address().unwrap())
            .await
            .unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let soon = io::now().after(Duration::from_millis(5));
        let received = io::with_deadline(soon, accepted.receive(BytesMut::with_capacity(10))).await;
        assert!(received.is_none());
        // The last owner goes while the receive is in flight: the descriptor closes all the same.
        drop(accepted);
        let (count, _) = stream.receive(BytesMut::with_capacity(10)).await;
        assert_eq!(count.unwrap(), 0);
    });
}
