//! Work that keeps a core busy for long (big bodies, aliases in YAML, lists in forms that are made afresh): in turns, and
//! beside the threads that serve, so that health checks and small requests are answered meanwhile.

use std::sync::OnceLock;

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
};

/// Work on fewer bytes than these is done where it is met: it takes less than handing it over is worth.
const LIGHT: usize = 64 * 1024;

/// As many at once as there are cores; who comes later waits in line, and is forgotten when its client goes away.
fn turns() -> &'static Semaphore {
    static TURNS: OnceLock<Semaphore> = OnceLock::new();
    TURNS.get_or_init(|| Semaphore::new(std::thread::available_parallelism().map_or(2, usize::from)))
}

/// Does `work` on about `bytes` bytes.
pub async fn run<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let many_threads = Handle::try_current().is_ok_and(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes < LIGHT || !many_threads {
        return work();
    }
    // The semaphore is never closed.
    let _turn = turns().acquire().await;
    tokio::task::block_in_place(work)
}

/// What a YAML text weighs: aliases multiply it.
pub fn yaml_weight(text: &[u8]) -> usize {
    const ALIASED: usize = 64;
    const SLOWER_THAN_JSON: usize = 8;
    let factor = if text.contains(&b'&') { ALIASED * SLOWER_THAN_JSON } else { SLOWER_THAN_JSON };
    text.len().saturating_mul(factor)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn heavy_work_leaves_the_threads_that_serve_to_others() {
        let busy = tokio::spawn(run(LIGHT, || {
            let until = Instant::now() + Duration::from_secs(2);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }));
        // The one worker is taken over by another thread: this goes on while the work does.
        tokio::task::yield_now().await;
        tokio::spawn(async {}).await.unwrap();
        assert!(!busy.is_finished());
        busy.await.unwrap();
    }

    #[test]
    fn a_few_aliases_weigh_as_much_as_a_big_body() {
        assert!(yaml_weight(&[b'a'; 1024]) < LIGHT);
        assert!(yaml_weight(&[b'&'; 1024]) >= LIGHT);
    }
}
