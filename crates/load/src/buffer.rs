//! Page-aligned buffers, one for each outstanding operation.

use random::Stream;
use std::{io, ptr};

/// Buffers are aligned to this, which satisfies every O_DIRECT rule known.
const PAGE: usize = 4096;
/// The kernel's sector: no two written are alike.
const SECTOR: usize = 512;

/// One mapping with a buffer for each slot: first those that are read into, then those that are
/// written from. They are apart, because reading would replace random data by whatever the target
/// holds.
pub(crate) struct Buffers {
    base: *mut u8,
    length: usize,
    stride: usize,
    writes_at: usize,
    /// Changes each written sector.
    stamp: u64,
}

impl Buffers {
    /// Bytes that `depth` buffers need.
    pub fn size(block_size: u64, depth: u32, reads: bool, writes: bool) -> u64 {
        let kinds = u64::from(reads) + u64::from(writes);
        block_size.next_multiple_of(PAGE as u64) * u64::from(depth) * kinds
    }

    /// For `depth` operations of `block_size` bytes; those for writing filled with random bytes.
    pub fn new(
        block_size: u64,
        depth: u32,
        (reads, writes): (bool, bool),
        stream: &mut Stream,
    ) -> io::Result<Self> {
        let length = Buffers::size(block_size, depth, reads, writes) as usize;
        let half = Buffers::size(block_size, depth, reads, false) as usize;
        // SAFETY: a new private mapping, of no file.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let buffers = Buffers {
            base: base.cast(),
            length,
            stride: (block_size as usize).next_multiple_of(PAGE),
            writes_at: half,
            stamp: stream.bits() | 1,
        };
        // SAFETY: the range is within the mapping, and nothing else refers to it yet.
        let written =
            unsafe { std::slice::from_raw_parts_mut(buffers.base.add(half), length - half) };
        stream.fill(written);
        Ok(buffers)
    }

    /// The whole mapping, for registering it with the kernel.
    pub fn whole(&self) -> libc::iovec {
        libc::iovec { iov_base: self.base.cast(), iov_len: self.length }
    }

    /// Where the slot's operation reads to.
    #[inline]
    pub fn read_into(&mut self, slot: u32) -> *mut u8 {
        // SAFETY: slots are below the depth that the mapping was made for.
        unsafe { self.base.add(slot as usize * self.stride) }
    }

    /// Where the slot's operation of `length` bytes, at most a block, writes from, its content changed so
    /// that no sector is written twice alike: else a device that compresses or deduplicates would be
    /// flattered. The slot must not be in flight.
    #[inline]
    pub fn write_from(&mut self, slot: u32, length: u32) -> *mut u8 {
        // SAFETY: slots are below the depth that the mapping was made for.
        let buffer = unsafe { self.base.add(self.writes_at + slot as usize * self.stride) };
        debug_assert!(length as usize <= self.stride);
        for sector in (0..length as usize).step_by(SECTOR) {
            // An odd step visits every value before any comes again.
            self.stamp = self.stamp.wrapping_add(0x9e37_79b9_7f4a_7c15);
            // SAFETY: within the slot's buffer, 8-byte aligned, and no operation uses it now.
            unsafe { buffer.add(sector).cast::<u64>().write(self.stamp) };
        }
        buffer
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours. A client drops it only when nothing is in flight.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_sectors_written_are_alike_or_compressible() {
        let mut stream = Stream::new(1, "test");
        let mut buffers = Buffers::new(4096, 2, (true, true), &mut stream).unwrap();
        let mut seen = HashSet::new();
        for turn in 0..100 {
            let from = buffers.write_from(turn % 2, 4096);
            // SAFETY: a buffer of 4096 bytes.
            let block = unsafe { std::slice::from_raw_parts(from, 4096) };
            for sector in block.chunks(SECTOR) {
                assert!(seen.insert(sector.to_vec()));
                let distinct: HashSet<u8> = sector.iter().copied().collect();
                assert!(distinct.len() > 150, "{} distinct bytes", distinct.len());
            }
        }
        let apart = buffers.write_from(0, 4096) as usize - buffers.read_into(0) as usize;
        assert_eq!(apart, 2 * 4096);
    }
}
