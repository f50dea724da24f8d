//! Tells a torn WAL from a damaged one, before SQLite opens it.
//!
//! SQLite's recovery stops at the first frame whose checksum fails and drops the rest without a word. That is
//! right for a torn tail and wrong for damage in the middle. With `synchronous=FULL` at most the last commit
//! can be unsynced at a crash, so two or more commit frames of the live generation from the first bad frame on
//! mean that acknowledged commits would be lost.
//!
//! Must run while this process has no connection to the store: closing any descriptor of the file would drop
//! SQLite's locks on it. Format: <https://www.sqlite.org/fileformat2.html#walformat>.

use std::{
    fs::File,
    io::{self, BufReader, ErrorKind, Read},
    path::Path,
};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const MAGIC: u32 = 0x377f_0682;

/// Damage that would silently drop commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalDamage {
    /// Number of the first frame that fails its checksum, from 1; 0 for the header.
    pub frame: u64,
    /// Commits of the live generation from there on: at least this many would be lost.
    pub commits: u64,
}

/// Examines the WAL at `path`. `Ok(None)`: absent, whole, or torn only at its end.
pub(super) fn examine(path: &Path) -> io::Result<Option<WalDamage>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    examine_frames(&mut BufReader::with_capacity(1 << 18, file))
}

fn examine_frames(input: &mut impl Read) -> io::Result<Option<WalDamage>> {
    let mut header = [0u8; HEADER];
    if !fill(input, &mut header)? {
        return Ok(None);
    }
    let Some(wal) = Wal::parse(&header) else {
        return Ok(None);
    };
    let mut frame = vec![0u8; FRAME_HEADER + wal.page_size];
    let mut sum = wal.sum;
    let mut salts = wal.salts;
    let mut bad = (!wal.intact).then_some(0);
    let (mut number, mut commits) = (0, 0);
    while fill(input, &mut frame)? {
        number += 1;
        let found = FrameHead::parse(&frame);
        if bad == Some(0) && number == 1 {
            // The header's own salts cannot be trusted; those of the first frame are the live ones.
            salts = found.salts;
        }
        if bad.is_none() {
            let next = wal.checksum(wal.checksum(sum, &frame[..8]), &frame[FRAME_HEADER..]);
            if found.salts == salts && next == found.sum {
                sum = next;
                continue;
            }
            bad = Some(number);
        }
        if found.salts == salts && found.is_commit {
            commits += 1;
        }
    }
    Ok(bad.filter(|_| commits >= 2).map(|frame| WalDamage { frame, commits }))
}

/// Fills `buffer`; false at the end of the input, also in the middle of a buffer.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}

type Sum = (u32, u32);
type Salts = [u8; 8];

struct Wal {
    page_size: usize,
    salts: Salts,
    sum: Sum,
    big_endian: bool,
    intact: bool,
}

impl Wal {
    /// `None` where this is no WAL at all: SQLite wrote none yet.
    fn parse(header: &[u8; HEADER]) -> Option<Self> {
        let magic = word(header, 0);
        // A damaged header is still told from none by the fields that never change.
        let (format, page_size) = (word(header, 4), word(header, 8) as usize);
        let plausible = magic & !1 == MAGIC || format == 3_007_000;
        if !plausible {
            return None;
        }
        let valid_size = (512..=65536).contains(&page_size) && page_size.is_power_of_two();
        let mut wal = Self {
            page_size: if valid_size { page_size } else { 4096 },
            salts: [0; 8],
            sum: (0, 0),
            big_endian: magic & 1 == 1,
            intact: false,
        };
        wal.salts.copy_from_slice(&header[16..24]);
        wal.sum = wal.checksum((0, 0), &header[..24]);
        wal.intact = magic & !1 == MAGIC && valid_size && wal.sum == (word(header, 24), word(header, 28));
        Some(wal)
    }

    fn checksum(&self, start: Sum, bytes: &[u8]) -> Sum {
        let (mut a, mut b) = start;
        for pair in bytes.chunks_exact(8) {
            let (x, y) = if self.big_endian {
                (word(pair, 0), word(pair, 4))
            } else {
                (word(pair, 0).swap_bytes(), word(pair, 4).swap_bytes())
            };
            a = a.wrapping_add(x).wrapping_add(b);
            b = b.wrapping_add(y).wrapping_add(a);
        }
        (a, b)
    }
}

struct FrameHead {
    is_commit: bool,
    salts: Salts,
    sum: Sum,
}

impl FrameHead {
    fn parse(frame: &[u8]) -> Self {
        let mut salts = [0; 8];
        salts.copy_from_slice(&frame[8..16]);
        Self { is_commit: word(frame, 4) != 0, salts, sum: (word(frame, 16), word(frame, 20)) }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
