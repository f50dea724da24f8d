//! Writes the seeds of every target into `corpus/`: `cargo run --manifest-path fuzz/Cargo.toml --bin seed`.

use std::path::Path;

use kenter_fuzz::{TARGETS, seeds::Seeds};

fn main() -> std::io::Result<()> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seeds = Seeds::read(&fuzz.join(".."));
    for target in TARGETS {
        let folder = fuzz.join("corpus").join(target.name);
        std::fs::create_dir_all(&folder)?;
        let inputs = seeds.of(target.name);
        for (at, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{at:05}")), input)?;
        }
        println!("{}: {} seeds", target.name, inputs.len());
    }
    Ok(())
}
