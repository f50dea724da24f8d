//! What a reload finds out by building, as far as it can be known without a running daemon: for `kenter check`. Opens,
//! binds and writes nothing.

use crate::{
    app,
    chain::check_authorities,
    options::{KeyPath, Problem, ValidatedOptions},
    pki::newcomer::Prepared,
};

/// Everything that is wrong with options that passed every check by themselves.
pub fn probe(options: &ValidatedOptions) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut wrong = |key: &str, reason: String| {
        let path = KeyPath::dotted(key);
        let origin = options.origin(&path);
        problems.push(Problem::new(path, reason).at(origin));
    };
    let own = match app::own_certificates(options) {
        Ok(own) => own,
        Err(error) => {
            wrong("serving.cert_dir", error.to_string());
            return problems;
        }
    };
    let own = own.as_ref().map(Prepared::newcomer);
    if let Err(error) = app::listener_specs(options, own) {
        wrong("serving.tls_cert_file", error.to_string());
    }
    if let Err(error) = check_authorities(options, own.map(|own| own.authority_pem.as_str())) {
        wrong(error.key, error.reason);
    }
    problems
}
