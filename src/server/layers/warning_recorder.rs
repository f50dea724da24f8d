//! Sends what was warned of (upstream WithWarningRecorder).

use ::http::{HeaderMap, HeaderValue};

use crate::server::{
    context::Exchange,
    stack::{Layer, LayerFuture, Next},
};

/// Characters of text per answer; past it every text is cut to [`CUT`].
const BUDGET: usize = 4096;
const CUT: usize = 256;

pub struct WarningRecorder;

impl Layer for WarningRecorder {
    fn name(&self) -> &'static str {
        "warnings"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        let warnings = cx.warnings.clone();
        Box::pin(async move {
            let mut response = next.run(cx).await;
            write(response.headers_mut(), &warnings.take());
            response
        })
    }
}

fn write(headers: &mut HeaderMap, warnings: &[String]) {
    let texts: Vec<&String> = warnings.iter().filter(|text| !text.chars().any(char::is_control)).collect();
    let total: usize = texts.iter().map(|text| text.chars().count()).sum();
    let mut left = BUDGET;
    for text in texts {
        let text: String = if total > BUDGET { text.chars().take(CUT).collect() } else { text.clone() };
        let length = text.chars().count();
        if length > left {
            return;
        }
        left -= length;
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{escaped}\"").as_bytes()) {
            headers.append("warning", value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_cut_when_there_are_too_many() {
        let mut headers = HeaderMap::new();
        write(&mut headers, &["say \"x\" \\".into(), "bad\ntext".into()]);
        assert_eq!(headers.get_all("warning").iter().collect::<Vec<_>>(), [r#"299 - "say \"x\" \\""#]);

        let mut headers = HeaderMap::new();
        let long: Vec<String> = (0..40).map(|n| format!("{n}{}", "y".repeat(400))).collect();
        write(&mut headers, &long);
        assert_eq!(headers.get_all("warning").iter().count(), 16);
    }
}
