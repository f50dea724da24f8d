//! A fake supervisor: the other end of `NOTIFY_SOCKET`.

use std::{os::unix::net::UnixDatagram, path::Path, sync::Arc, time::Duration};

use std::sync::Mutex;

/// Collects what it is told, one datagram after the other.
pub struct Notified(Arc<Mutex<Vec<String>>>);

impl Notified {
    /// Listens on a path.
    pub fn at(path: &Path) -> Self {
        Self::of(UnixDatagram::bind(path).expect("a socket"))
    }

    /// Listens on a socket until this is dropped.
    pub fn of(socket: UnixDatagram) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let held = Arc::downgrade(&heard);
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("set");
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Some(heard) = held.upgrade() {
                if let Ok(length) = socket.recv(&mut buffer) {
                    heard.lock().expect("no panic").push(String::from_utf8_lossy(&buffer[..length]).into_owned());
                }
            }
        });
        Self(heard)
    }

    /// All lines so far, in order.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().expect("no panic").iter().flat_map(|message| message.lines()).map(str::to_owned).collect()
    }

    /// Waits until the lines after `from` contain `wanted`, in this order; one that ends in `*` is a
    /// beginning. Returns how many lines there are then.
    pub async fn heard(&self, from: usize, wanted: &[&str]) -> usize {
        let matches = |line: &String, wanted: &str| match wanted.strip_suffix('*') {
            Some(beginning) => line.starts_with(beginning),
            None => line == wanted,
        };
        super::eventually(&format!("the supervisor was told {wanted:?}"), || async {
            let lines = self.lines();
            let mut rest = lines.iter().skip(from);
            wanted.iter().all(|wanted| rest.any(|line| matches(line, wanted)))
        })
        .await;
        self.lines().len()
    }
}
