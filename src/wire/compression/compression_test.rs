use proptest::prelude::*;

use super::*;
use crate::base::limits::{KIB, MIB};

fn packed(codec: Codec, input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    compress(codec, None, input, &mut out).unwrap();
    out
}

fn unpack(codec: Codec, input: &[u8], limits: DecodeLimits) -> Result<Vec<u8>, DecompressError> {
    let mut out = Vec::new();
    Decoder::new(codec, input, limits)?.read_to_end(&mut out)?;
    Ok(out)
}

fn unpacked(codec: Codec, input: &[u8]) -> Result<Vec<u8>, DecompressError> {
    unpack(codec, input, DecodeLimits::default())
}

const COMPRESSING: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

#[test]
fn output_is_taken_at_the_limit_and_refused_one_past_it() {
    for codec in COMPRESSING {
        for (len, is_good) in [(300 * KIB, true), (300 * KIB + 1, false)] {
            let limits = DecodeLimits {
                output_bytes_max: 300 * KIB as u64,
                window_bytes_max: MIB,
            };
            let bytes = packed(codec, &vec![7; len]);
            let result = unpack(codec, &bytes, limits);
            if is_good {
                assert_eq!(result.unwrap().len(), len, "{codec:?}");
            } else {
                let expected = DecompressError::TooLarge {
                    limit: 300 * KIB as u64,
                };
                assert_eq!(result, Err(expected), "{codec:?}");
            }
        }
    }
}

#[test]
fn a_bomb_is_refused_without_its_output() {
    // The limit for Kafka's default message size ends it, however little the bomb weighs.
    for codec in [Codec::Gzip, Codec::Lz4, Codec::Zstd] {
        let bytes = packed(codec, &vec![0; 40 * MIB]);
        let mut decoder = Decoder::new(codec, &bytes, DecodeLimits::default()).unwrap();
        let mut total = 0;
        let error = loop {
            match decoder.fill() {
                Ok(chunk) => {
                    assert!(!chunk.is_empty(), "{codec:?} came to its end");
                    let len = chunk.len();
                    assert!(len <= 64 * KIB, "{codec:?} holds {len} bytes");
                    total += len as u64;
                    decoder.consume(len);
                }
                Err(error) => break error,
            }
        };
        let limit = DecodeLimits::default().output_bytes_max;
        assert_eq!(error, DecompressError::TooLarge { limit });
        assert!(total <= limit);
    }
}

#[test]
fn raw_snappy_is_read_as_one_block() {
    let text = b"raw as librdkafka sends it, raw as librdkafka sends it".repeat(40);
    let raw = snap::raw::Encoder::new().compress_vec(&text).unwrap();
    assert_eq!(unpacked(Codec::Snappy, &raw).unwrap(), text);
    let tiny = snap::raw::Encoder::new().compress_vec(b"x").unwrap();
    assert_eq!(unpacked(Codec::Snappy, &tiny).unwrap(), b"x");
}

#[test]
fn concatenated_snappy_streams_are_read_as_one() {
    let mut bytes = packed(Codec::Snappy, b"first ");
    bytes.extend_from_slice(&packed(Codec::Snappy, b"second"));
    assert_eq!(unpacked(Codec::Snappy, &bytes).unwrap(), b"first second");
}

#[test]
fn a_snappy_length_is_held_against_what_the_bytes_can_make() {
    // The shape of CVE-2023-34455: a block of ten bytes that claims to become 4 GiB.
    let mut raw = vec![0xff, 0xff, 0xff, 0xff, 0x0f];
    raw.extend_from_slice(&[0; 5]);
    let error = unpacked(Codec::Snappy, &raw).unwrap_err();
    assert!(matches!(error, DecompressError::Corrupt { .. }), "{error}");
    let header = &packed(Codec::Snappy, b"x")[..16];
    for length in [i32::MAX, -1, 11] {
        let mut framed = header.to_vec();
        framed.extend_from_slice(&length.to_be_bytes());
        framed.extend_from_slice(&raw);
        let error = unpacked(Codec::Snappy, &framed).unwrap_err();
        assert!(
            matches!(error, DecompressError::Corrupt { .. }),
            "{length}: {error}"
        );
    }
}

#[test]
fn a_snappy_block_is_taken_at_the_window_and_refused_one_past_it() {
    for (len, is_good) in [(MIB, true), (MIB + 1, false)] {
        let limits = DecodeLimits {
            output_bytes_max: 64 * MIB as u64,
            window_bytes_max: MIB,
        };
        let raw = snap::raw::Encoder::new()
            .compress_vec(&vec![3; len])
            .unwrap();
        assert_eq!(unpack(Codec::Snappy, &raw, limits).is_ok(), is_good);
    }
}

#[test]
fn large_zstd_windows_are_read_while_their_output_is_small() {
    let encode = |len: usize| {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 22).unwrap();
        encoder.window_log(27).unwrap();
        std::io::Write::write_all(&mut encoder, &vec![1; len]).unwrap();
        encoder.finish().unwrap()
    };
    let limits = DecodeLimits::default();
    let window = limits.window_bytes_max;
    for (len, is_good) in [(100, true), (window, true), (window + 1, false)] {
        let result = unpack(Codec::Zstd, &encode(len), limits);
        assert_eq!(result.is_ok(), is_good, "{len} {:?}", result.err());
    }
    // A first frame of modest means does not let a later one in.
    let mut two = packed(Codec::Zstd, b"small");
    two.extend_from_slice(&encode(100));
    assert!(unpacked(Codec::Zstd, &two).is_err());
}

#[test]
fn lz4_frames_are_read_as_kafka_reads_them() {
    let text = b"lz4 frames of Kafka have independent blocks. ".repeat(5_000);
    let frame = packed(Codec::Lz4, &text);
    let check = |frame: &[u8]| unpacked(Codec::Lz4, frame);
    assert_eq!(check(&frame).unwrap(), text);
    for (at, what) in [
        (0, "magic"),
        (4, "flags"),
        (5, "block size"),
        (6, "checksum"),
    ] {
        let mut broken = frame.clone();
        broken[at] ^= 0x02;
        assert!(check(&broken).is_err(), "{what}");
    }
    // Without its end mark a frame ends too early.
    assert!(check(&frame[..frame.len() - 4]).is_err());
    assert!(check(&frame[..frame.len() - 5]).is_err());
    // What other encoders may add: sizes and checksums.
    let info = lz4_flex::frame::FrameInfo::new()
        .content_size(Some(text.len() as u64))
        .block_mode(lz4_flex::frame::BlockMode::Independent)
        .block_size(lz4_flex::frame::BlockSize::Max256KB)
        .block_checksums(true)
        .content_checksum(true);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    std::io::Write::write_all(&mut encoder, &text).unwrap();
    let mut full = encoder.finish().unwrap();
    assert_eq!(check(&full).unwrap(), text);
    let at = full.len() - 12;
    full[at] ^= 1;
    assert!(check(&full).is_err(), "a block checksum");
}

#[test]
fn gzip_members_in_a_row_are_one() {
    let mut bytes = packed(Codec::Gzip, b"one ");
    bytes.extend_from_slice(&packed(Codec::Gzip, b"two"));
    assert_eq!(unpacked(Codec::Gzip, &bytes).unwrap(), b"one two");
}

#[test]
fn every_level_of_kafkas_settings_is_taken() {
    let text = b"levels".repeat(1_000);
    for codec in COMPRESSING {
        let Some((range, default)) = level_range(codec) else {
            continue;
        };
        for level in [*range.start(), default, *range.end()] {
            let mut out = Vec::new();
            compress(codec, Some(level), &text, &mut out).unwrap();
            assert_eq!(unpacked(codec, &out).unwrap(), text, "{codec:?} {level}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_compressed_comes_back(
        text: Vec<u8>,
        repeats in 1usize..200,
        codec in proptest::sample::select(COMPRESSING.to_vec()),
    ) {
        let input = text.repeat(repeats);
        prop_assert_eq!(unpacked(codec, &packed(codec, &input)).unwrap(), input);
    }

    #[test]
    fn cut_and_flipped_streams_never_panic(
        text: Vec<u8>,
        cut: proptest::sample::Index,
        flip: proptest::sample::Index,
        codec in proptest::sample::select(COMPRESSING.to_vec()),
    ) {
        let mut bytes = packed(codec, &text.repeat(7));
        let at = flip.index(bytes.len());
        bytes[at] ^= 0x40;
        let _ = unpacked(codec, &bytes);
        let _ = unpacked(codec, &bytes[..cut.index(bytes.len())]);
        let _ = unpacked(codec, &text);
    }
}
