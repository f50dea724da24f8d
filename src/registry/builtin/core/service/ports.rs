//! Node ports: which are taken, and taking several for one write (kubernetes
//! `pkg/registry/core/service/portallocator`).
//!
//! A port is taken while a stored Service has it or a write that wants it is under way. The set is filled out of the
//! stored Services when it is first asked; afterwards only allocation and [`NodePorts::rebuild`] change it. It lives
//! as long as the process, whatever range a generation's options give.

use std::{collections::HashMap, ops::RangeInclusive, sync::Arc};

use parking_lot::Mutex;

use super::view::{health_port, needs_health_port, node_ports_of};
use crate::{api::unique, object::Value};

/// Passes of the repair that a port without a Service is kept for: its write may be under way
/// (upstream numRepairsBeforeLeakCleanup).
const PASSES_BEFORE_RELEASE: u8 = 3;

/// `--service-node-port-range`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(pub RangeInclusive<u16>);

impl std::fmt::Display for PortRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.0.start(), self.0.end())
    }
}

impl PortRange {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    /// How many ports at the beginning are left for those who ask for a number.
    fn static_band(&self) -> u64 {
        match self.size() {
            ..=16 => 0,
            size => (size / 32).clamp(16, 128),
        }
    }

    fn port(&self, number: i64) -> Option<u16> {
        u16::try_from(number).ok().filter(|port| self.0.contains(port))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortError {
    /// With the range.
    NotInRange(PortRange),
    Taken,
    Full,
}

impl std::fmt::Display for PortError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotInRange(range) => {
                write!(f, "provided port is not in the valid range. The range of valid ports is {range}")
            }
            Self::Taken => f.write_str("provided port is already allocated"),
            Self::Full => f.write_str("range is full"),
        }
    }
}

/// Which ports are taken, of all there are.
#[derive(Default)]
pub struct NodePorts(Mutex<State>);

#[derive(Default)]
struct State {
    /// Filled out of the stored Services.
    loaded: bool,
    taken: Set,
    /// Ports that no Service has → passes until they are free again.
    leaks: HashMap<u16, u8>,
}

/// A bit for each port.
struct Set(Box<[u64; 1024]>);

impl Default for Set {
    fn default() -> Self {
        Self(Box::new([0; 1024]))
    }
}

impl Set {
    fn has(&self, port: u16) -> bool {
        self.0[usize::from(port >> 6)] & 1 << (port & 63) != 0
    }

    /// Whether it was not in it.
    fn insert(&mut self, port: u16) -> bool {
        let new = !self.has(port);
        self.0[usize::from(port >> 6)] |= 1 << (port & 63);
        new
    }

    fn remove(&mut self, port: u16) {
        self.0[usize::from(port >> 6)] &= !(1 << (port & 63));
    }

    fn iter(&self) -> impl Iterator<Item = u16> {
        (0..=u16::MAX).filter(|port| self.has(*port))
    }
}

/// What a pass over all Services found wrong with one's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortProblem {
    NotAllocated(i64),
    AlreadyAllocated(i64),
    OutOfRange(i64, PortRange),
}

impl NodePorts {
    /// The state, filled first where nobody has asked before.
    fn with<T>(&self, services: &dyn Fn() -> Vec<Arc<Value>>, run: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.0.lock();
        if !state.loaded {
            for service in services() {
                for port in ports_of(&service).into_iter().filter_map(|port| u16::try_from(port).ok()) {
                    state.taken.insert(port);
                }
            }
            state.loaded = true;
        }
        run(&mut state)
    }

    fn take(&self, services: &dyn Fn() -> Vec<Arc<Value>>, range: &PortRange, number: i64) -> Result<(), PortError> {
        let port = range.port(number).ok_or_else(|| PortError::NotInRange(range.clone()))?;
        let new = self.with(services, |state| state.taken.insert(port));
        if new { Ok(()) } else { Err(PortError::Taken) }
    }

    fn has(&self, services: &dyn Fn() -> Vec<Arc<Value>>, range: &PortRange, number: i64) -> bool {
        range.port(number).is_some_and(|port| self.with(services, |state| state.taken.has(port)))
    }

    /// Takes a free port, from the upper part of the range as long as it has one.
    fn take_any(&self, services: &dyn Fn() -> Vec<Arc<Value>>, range: &PortRange) -> Result<i64, PortError> {
        let (first, band, size) = (u64::from(*range.0.start()), range.static_band(), range.size());
        self.with(services, |state| {
            for (low, high) in [(band, size), (0, band)] {
                let start = unique::below((high - low).max(1));
                let from_there = (low + start..high).chain(low..low + start).map(|at| first + at);
                let free = from_there.filter_map(|port| u16::try_from(port).ok()).find(|port| !state.taken.has(*port));
                if let Some(port) = free.filter(|_| high > low) {
                    state.taken.insert(port);
                    return Ok(port.into());
                }
            }
            Err(PortError::Full)
        })
    }

    /// Gives ports back. Those out of any range are nobody's.
    pub fn release(&self, ports: impl IntoIterator<Item = i64>) {
        let mut state = self.0.lock();
        for port in ports.into_iter().filter_map(|port| u16::try_from(port).ok()) {
            state.taken.remove(port);
            state.leaks.remove(&port);
        }
    }

    /// One pass of the repair: what Services have is taken, and what none has had for some passes is free. Answers what
    /// was found wrong, by the Service's place in `services`.
    pub fn rebuild(&self, services: &[Arc<Value>], range: &PortRange) -> Vec<(usize, PortProblem)> {
        let mut problems = Vec::new();
        let mut state = self.0.lock();
        let known = std::mem::replace(&mut state.loaded, true);
        let mut used = Set::default();
        for (index, service) in services.iter().enumerate() {
            for number in ports_of(service) {
                match range.port(number) {
                    None => problems.push((index, PortProblem::OutOfRange(number, range.clone()))),
                    Some(port) if !used.insert(port) => problems.push((index, PortProblem::AlreadyAllocated(number))),
                    Some(port) => {
                        if state.taken.insert(port) && known {
                            problems.push((index, PortProblem::NotAllocated(number)));
                        }
                        state.leaks.remove(&port);
                    }
                }
            }
        }
        let unused: Vec<u16> = state.taken.iter().filter(|port| !used.has(*port)).collect();
        for port in unused {
            let left = state.leaks.entry(port).or_insert(PASSES_BEFORE_RELEASE);
            *left -= 1;
            if *left == 0 {
                tracing::warn!(port, "the node port appears to have leaked: cleaning up");
                state.leaks.remove(&port);
                state.taken.remove(port);
            }
        }
        problems
    }
}

/// All ports of a Service on nodes; one that several protocols share counts once, one that is there twice, twice.
fn ports_of(service: &Value) -> Vec<i64> {
    let mut seen: HashMap<i64, Vec<&str>> = HashMap::new();
    let mut all = Vec::new();
    let mut add = |number: i64, protocol| {
        // Three protocols at most: the list is short.
        let by = seen.entry(number).or_default();
        let same = by.contains(&protocol);
        if same || by.is_empty() {
            all.push(number);
        }
        if !same {
            by.push(protocol);
        }
    };
    for port in service.array_at(&["spec", "ports"]) {
        match port.i64_at(&["nodePort"]) {
            None | Some(0) => {}
            Some(number) => add(number, port.str_at(&["protocol"])),
        }
    }
    if health_port(service) != 0 {
        add(health_port(service), "TCP");
    }
    all
}

/// The ports that are given back when a Service goes.
pub fn of_deleted(service: &Value) -> Vec<i64> {
    let mut ports = node_ports_of(service);
    if needs_health_port(service) && health_port(service) > 0 {
        ports.push(health_port(service));
    }
    ports
}

/// The ports that one write takes and gives up. Until [`PortOperation::finish`] nothing is given back.
pub struct PortOperation {
    ports: Arc<NodePorts>,
    services: Arc<dyn Fn() -> Vec<Arc<Value>> + Send + Sync>,
    range: PortRange,
    dry_run: bool,
    taken: Vec<i64>,
    given_up: Vec<i64>,
}

impl PortOperation {
    pub fn new(
        ports: Arc<NodePorts>,
        services: Arc<dyn Fn() -> Vec<Arc<Value>> + Send + Sync>,
        range: PortRange,
        dry_run: bool,
    ) -> Self {
        Self { ports, services, range, dry_run, taken: Vec::new(), given_up: Vec::new() }
    }

    /// Takes a port that was asked for.
    pub fn take(&mut self, port: i64) -> Result<(), PortError> {
        if !self.dry_run {
            self.ports.take(&*self.services, &self.range, port)?;
        } else if self.taken.contains(&port) || self.ports.has(&*self.services, &self.range, port) {
            return Err(PortError::Taken);
        }
        self.taken.push(port);
        Ok(())
    }

    /// Takes any. A dry run shows a number beyond the default range, as upstream's does.
    pub fn take_any(&mut self) -> Result<i64, PortError> {
        let port = if self.dry_run {
            self.taken.iter().max().map_or(32768, |last| *last) + 1
        } else {
            self.ports.take_any(&*self.services, &self.range)?
        };
        self.taken.push(port);
        Ok(port)
    }

    /// Gives a port back when the write has succeeded.
    pub fn give_up(&mut self, port: i64) {
        self.given_up.push(port);
    }

    /// Gives back what was taken where the write failed, and what was given up where it succeeded.
    pub fn finish(self, success: bool) {
        if !self.dry_run {
            self.ports.release(if success { self.given_up } else { self.taken });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn service(ports: &[(i64, &str)]) -> Arc<Value> {
        let ports: Vec<Value> =
            ports.iter().map(|(port, by)| json!({"nodePort": (*port), "protocol": (*by)})).collect();
        Arc::new(json!({"spec": {"type": "NodePort", "ports": (Value::Array(ports))}}))
    }

    fn operation(ports: &Arc<NodePorts>, stored: Vec<Arc<Value>>, range: RangeInclusive<u16>) -> PortOperation {
        PortOperation::new(ports.clone(), Arc::new(move || stored.clone()), PortRange(range), false)
    }

    #[test]
    fn what_stored_services_have_is_taken_from_the_first_question_on() {
        let ports = Arc::new(NodePorts::default());
        let mut first = operation(&ports, vec![service(&[(30001, "TCP")])], 30000..=30002);
        assert_eq!(first.take(30001), Err(PortError::Taken));
        assert_eq!(first.take(29999), Err(PortError::NotInRange(PortRange(30000..=30002))));
        let mut all = [first.take_any().unwrap(), first.take_any().unwrap()];
        all.sort_unstable();
        assert_eq!(all, [30000, 30002]);
        assert_eq!(first.take_any(), Err(PortError::Full));
        first.finish(false);
        assert_eq!(operation(&ports, vec![], 30000..=30002).take(30000), Ok(()));
    }

    #[test]
    fn the_first_ports_are_left_for_who_asks_for_them_until_no_other_is_free() {
        let ports = Arc::new(NodePorts::default());
        let mut operation = operation(&ports, vec![], 30000..=30031);
        let dynamic: Vec<i64> = (0..16).map(|_| operation.take_any().unwrap()).collect();
        assert!(dynamic.iter().all(|port| *port >= 30016), "{dynamic:?}");
        assert!(operation.take_any().unwrap() < 30016);
    }

    #[test]
    fn a_repair_frees_a_port_without_a_service_in_its_third_pass_and_takes_what_a_service_has() {
        let ports = Arc::new(NodePorts::default());
        let range = PortRange(30000..=30010);
        operation(&ports, vec![], 30000..=30010).take(30005).unwrap();
        let stored = [service(&[(30001, "TCP"), (30001, "UDP")]), service(&[(30001, "TCP"), (40000, "TCP")])];
        let problems = ports.rebuild(&stored, &range);
        let expected = [
            (0, PortProblem::NotAllocated(30001)),
            (1, PortProblem::AlreadyAllocated(30001)),
            (1, PortProblem::OutOfRange(40000, range.clone())),
        ];
        assert_eq!(problems, expected);
        ports.rebuild(&stored, &range);
        assert_eq!(operation(&ports, vec![], 30000..=30010).take(30005), Err(PortError::Taken));
        ports.rebuild(&stored, &range);
        assert_eq!(operation(&ports, vec![], 30000..=30010).take(30005), Ok(()));
    }
}
