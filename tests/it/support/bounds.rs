//! What something costs: CPU time of a thread, memory it holds at most, the stack it runs on.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::Duration,
};

/// The stack of a thread that answers requests, in bytes.
pub const WORKER_STACK: usize = kenter::object::DEEP_STACK;

/// CPU time this thread has taken, whatever else the machine does.
pub fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists and `time` is ours to write.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Runs something where a request would run, and refuses what takes longer (CPU time, without optimisation) or holds more
/// memory than that.
pub fn within<T: Send>(what: &str, time: Duration, bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let measured = || {
            let (before, began) = (HELD.with(Cell::get), cpu_time());
            PEAK.with(|peak| peak.set(before));
            let result = work();
            (result, cpu_time() - began, PEAK.with(Cell::get) - before)
        };
        let thread = std::thread::Builder::new().name(what.to_owned()).stack_size(WORKER_STACK);
        let thread = thread.spawn_scoped(scope, measured).expect("a thread");
        let (result, took, held) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        eprintln!("{what}: {took:?}, {} KiB", held / 1024);
        assert!(took <= time, "{what} took {took:?} of {time:?}");
        assert!(held <= isize::try_from(bytes).unwrap_or(isize::MAX), "{what} held {held} of {bytes} bytes");
        result
    })
}

thread_local! {
    /// Bytes that this thread has asked for and not given back; what others free for it is not seen.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: isize) {
    // A thread that ends has no count any more.
    let _ = HELD.try_with(|held| {
        let now = held.get() + bytes;
        held.set(now);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
    });
}

// SAFETY: the system's allocator does it all; counting touches nothing of it and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as promised to us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as promised to us.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as promised to us.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
