//! The `process_*` metrics, read from `/proc/self` at each scrape.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(sample) = Sample::read() else { return Ok(()) };
        let counter = encoder.encode_descriptor(
            "process_cpu_seconds",
            "Total user and system CPU time spent in seconds",
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(sample.cpu_seconds).encode(counter)?;
        let gauges: [(&str, &str, f64); 5] = [
            ("process_resident_memory_bytes", "Resident memory size in bytes", sample.resident),
            ("process_virtual_memory_bytes", "Virtual memory size in bytes", sample.virtual_size),
            ("process_start_time_seconds", "Start time of the process since unix epoch in seconds", sample.started),
            ("process_open_fds", "Number of open file descriptors", sample.open_files),
            ("process_max_fds", "Maximum number of open file descriptors", sample.max_files),
        ];
        for (name, help, value) in gauges {
            let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(gauge)?;
        }
        Ok(())
    }
}

struct Sample {
    cpu_seconds: f64,
    resident: f64,
    virtual_size: f64,
    started: f64,
    open_files: f64,
    max_files: f64,
}

/// Clock ticks of `/proc` are hundredths of a second on every architecture we run on.
const TICKS: f64 = 100.0;

impl Sample {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name may hold blanks and parentheses; what follows its last parenthesis does not.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<f64>().ok();
        // In kilobytes, whatever the size of a page.
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?;
        let resident: f64 = resident.parse().ok()?;
        let boot = fs::read_to_string("/proc/stat").ok()?;
        let boot: f64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        let limits = fs::read_to_string("/proc/self/limits").ok()?;
        let max_files =
            limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?;
        Some(Self {
            cpu_seconds: (number(11)? + number(12)?) / TICKS,
            started: boot + number(19)? / TICKS,
            virtual_size: number(20)?,
            resident: resident * 1024.0,
            open_files: f64::from(u32::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).unwrap_or(u32::MAX)),
            max_files: max_files.parse().unwrap_or(f64::INFINITY),
        })
    }
}
