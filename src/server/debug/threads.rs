//! The threads of the process by name, as text and as a profile that `go tool pprof` reads
//! (google/pprof `proto/profile.proto`). Tasks of the runtime have no stacks of their own that could be shown; what
//! the process is made of is its threads.

use std::{collections::BTreeMap, fs};

use crate::{codec::protobuf::Backward, server::respond};

/// How many threads there are of each name; empty where the system does not tell.
pub fn names() -> BTreeMap<String, u64> {
    let mut names = BTreeMap::new();
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        // A thread may have ended since the directory was read.
        let Ok(name) = fs::read_to_string(task.path().join("comm")) else { continue };
        *names.entry(name.trim_end().to_owned()).or_default() += 1;
    }
    names
}

pub fn text(threads: &BTreeMap<String, u64>) -> String {
    let mut out = format!("goroutine profile: total {}\n", threads.values().sum::<u64>());
    for (name, count) in threads {
        out.push_str(&format!("{count} @ {name}\n"));
    }
    out
}

/// One sample for each name, with one frame that is called as the thread is; gzipped, as the format wants it.
pub fn profile(threads: &BTreeMap<String, u64>) -> std::io::Result<Vec<u8>> {
    // The table of texts: the first has to be empty.
    let texts = ["", "goroutine", "count"].into_iter().chain(threads.keys().map(String::as_str));
    let first_name = 3;
    let mut out = Backward::default();
    out.number(12, 1); // period
    message(&mut out, 11, value_type);
    for text in texts.collect::<Vec<_>>().into_iter().rev() {
        out.delimited(6, text.as_bytes());
    }
    for (at, count) in threads.values().enumerate().rev() {
        let id = at as u64 + 1;
        message(&mut out, 5, |out| {
            out.number(2, first_name + at as u64); // name
            out.number(1, id);
        });
        message(&mut out, 4, |out| {
            message(out, 4, |out| out.number(1, id)); // line: function
            out.number(1, id);
        });
        message(&mut out, 2, |out| {
            out.number(2, *count); // value
            out.number(1, id); // location
        });
    }
    message(&mut out, 1, value_type);
    respond::gzip(&out.finish())
}

/// `goroutine` in the unit `count`, by their places in the table of texts.
fn value_type(out: &mut Backward) {
    out.number(2, 2);
    out.number(1, 1);
}

fn message(out: &mut Backward, tag: u32, write: impl FnOnce(&mut Backward)) {
    let end = out.len();
    write(out);
    out.close(tag, end);
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn every_thread_is_counted_under_its_name() {
        let (ready, wait) =
            (std::sync::Arc::new(std::sync::Barrier::new(3)), std::sync::Arc::new(std::sync::Barrier::new(3)));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (ready, wait) = (ready.clone(), wait.clone());
                let run = move || {
                    ready.wait();
                    wait.wait();
                };
                std::thread::Builder::new().name("counted".to_owned()).spawn(run).unwrap()
            })
            .collect();
        ready.wait();
        let names = names();
        wait.wait();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(names.get("counted"), Some(&2));
        assert!(text(&names).contains("2 @ counted\n"));
    }

    #[test]
    fn a_profile_is_one_sample_a_name() {
        let bytes = profile(&BTreeMap::from([("a".to_owned(), 2)])).unwrap();
        let mut raw = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut raw).unwrap();
        let expected: [&[u8]; 8] = [
            &[0x0a, 4, 8, 1, 16, 2],         // sample_type
            &[0x12, 4, 8, 1, 16, 2],         // sample: location 1, value 2
            &[0x22, 6, 8, 1, 0x22, 2, 8, 1], // location 1: line of function 1
            &[0x2a, 4, 8, 1, 16, 3],         // function 1: name is text 3
            &[0x32, 0, 0x32, 9],
            b"goroutine",
            &[0x32, 5, b'c', b'o', b'u', b'n', b't', 0x32, 1, b'a'],
            &[0x5a, 4, 8, 1, 16, 2, 0x60, 1], // period_type, period
        ];
        assert_eq!(raw, expected.concat());
    }
}
