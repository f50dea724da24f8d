//! The fuzz targets without a fuzzer: each with seeds that are changed at random, the same ones in every run.
//!
//! `KENTER_FUZZ_RUNS` multiplies how many there are; `KENTER_FUZZ_CASE=json:17` runs one alone, as a failure tells.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::Duration,
};

use crate::support::bounds::{WORKER_STACK, cpu_time};

#[path = "../../fuzz/src/lib.rs"]
pub mod library;

use library::{
    TARGETS, Target,
    mutate::{Random, mutate},
    seeds::Seeds,
};

/// CPU time that one input of at most 64 KiB may take in a build without optimisation.
const LONGEST: Duration = Duration::from_secs(2);

#[test]
fn every_target_stands_what_seeds_can_be_turned_into() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seeds = Seeds::read(root);
    let alone = std::env::var("KENTER_FUZZ_CASE").ok();
    let alone = alone.as_deref().and_then(|case| case.split_once(':'));
    let factor: u64 = std::env::var("KENTER_FUZZ_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1);
    // What a target does not stand is told once, by this test.
    let hook = std::panic::take_hook();
    let chosen = TARGETS.iter().filter(|target| alone.is_none_or(|(name, _)| name == target.name));
    let failures: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = chosen
            .map(|target| {
                let seeds = seeds.of(target.name);
                let cases = match alone.and_then(|(_, number)| number.parse().ok()) {
                    Some(number) => number..number + 1,
                    None => 0..target.runs * factor,
                };
                let work = move || drive(target, &seeds, cases);
                std::thread::Builder::new().stack_size(WORKER_STACK).spawn_scoped(scope, work).expect("a thread")
            })
            .collect();
        running.into_iter().flat_map(|thread| thread.join().expect("it catches panics")).collect()
    });
    std::panic::set_hook(hook);
    assert!(failures.is_empty(), "{} findings:\n{}", failures.len(), failures.join("\n"));
}

/// The first few findings of a target.
fn drive(target: &Target, seeds: &[Vec<u8>], cases: std::ops::Range<u64>) -> Vec<String> {
    assert!(!seeds.is_empty(), "{} has no seeds", target.name);
    let mut findings = Vec::new();
    let began = cpu_time();
    for number in cases {
        // The seeds themselves come first.
        let input = match seeds.get(number as usize) {
            Some(seed) => seed.clone(),
            None => mutate(seeds, &mut Random::new(number)),
        };
        let before = cpu_time();
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        let took = cpu_time() - before;
        let what = match outcome {
            Err(panic) => panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or(panic.downcast_ref::<&str>().copied())
                .unwrap_or("panicked")
                .to_owned(),
            Ok(()) if took > LONGEST => format!("took {took:?}"),
            Ok(()) => continue,
        };
        findings.push(format!(
            "KENTER_FUZZ_CASE={}:{number}: {what}\n  input: {}",
            target.name,
            String::from_utf8_lossy(&input).escape_debug()
        ));
        if findings.len() == 5 {
            break;
        }
    }
    eprintln!("{}: {} seeds, {:?}", target.name, seeds.len(), cpu_time() - began);
    findings
}
