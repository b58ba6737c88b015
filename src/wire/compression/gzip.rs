//! gzip (RFC 1952) as Java reads it (`GZIPInputStream`): members in a row are one stream, and bytes
//! after the last one that begin no other are passed over.

use std::io::{self, Read};

use flate2::bufread::GzDecoder;

const MEMBER_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// Decodes member after member.
pub(super) struct GzipReader<'a> {
    member: GzDecoder<&'a [u8]>,
}

impl<'a> GzipReader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            member: GzDecoder::new(input),
        }
    }
}

impl Read for GzipReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = self.member.read(out)?;
            if len > 0 || out.is_empty() {
                return Ok(len);
            }
            let rest: &[u8] = self.member.get_ref();
            if !rest.starts_with(&MEMBER_MAGIC) {
                return Ok(0);
            }
            // Each turn takes a member's header and trailer off the input, so the loop ends.
            self.member = GzDecoder::new(rest);
        }
    }
}
