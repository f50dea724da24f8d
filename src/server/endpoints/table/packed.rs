//! A printed row as bytes that are kept: JSON text, with places where an age is told when it is written.
//!
//! Pieces follow one another, each a length, so much JSON text, and what comes after the text: the end, or a time in
//! microseconds with the words it takes.

use jiff::Timestamp;

use crate::{
    object::{Style, escape_into, write_json},
    registry::printer::{Cell, PrintedRow, Tense},
};

const END: u8 = 0;
const SINCE: u8 = 1;
const AROUND: u8 = 2;

/// Packs the members `cells` and `conditions` of a row.
pub fn pack(row: &PrintedRow) -> Vec<u8> {
    let mut packer = Packer { out: Vec::with_capacity(160), text: Vec::with_capacity(128) };
    packer.text.extend_from_slice(br#""cells":["#);
    for (at, cell) in row.cells.iter().enumerate() {
        if at > 0 {
            packer.text.push(b',');
        }
        packer.cell(cell);
    }
    packer.text.push(b']');
    if let Some(completed) = row.completed {
        packer.text.extend_from_slice(br#","conditions":[{"type":"Completed","status":"True","reason":"#);
        escape_into(&mut packer.text, completed.reason);
        packer.text.extend_from_slice(br#","message":"#);
        escape_into(&mut packer.text, completed.message);
        packer.text.extend_from_slice(b"}]");
    }
    packer.piece(END);
    packer.out
}

struct Packer {
    out: Vec<u8>,
    text: Vec<u8>,
}

impl Packer {
    fn cell(&mut self, cell: &Cell) {
        match cell {
            Cell::Value(value) => write_json(&mut self.text, value, Style::Compact),
            Cell::Aging(aging) => {
                escape_into(&mut self.text, &aging.before);
                self.text.pop();
                self.piece(match aging.tense {
                    Tense::Since => SINCE,
                    Tense::Around => AROUND,
                });
                self.out.extend_from_slice(&aging.at.as_microsecond().to_le_bytes());
                let start = self.text.len();
                escape_into(&mut self.text, &aging.after);
                self.text.remove(start);
            }
        }
    }

    /// Ends a piece.
    fn piece(&mut self, what: u8) {
        self.out.extend_from_slice(&(self.text.len() as u32).to_le_bytes());
        self.out.append(&mut self.text);
        self.out.push(what);
    }
}

/// Writes what was packed as it is at `now`.
pub fn write(out: &mut Vec<u8>, packed: &[u8], now: Timestamp) {
    let mut rest = packed;
    while let Some((length, after)) = rest.split_first_chunk() {
        let Some((text, after)) = after.split_at_checked(u32::from_le_bytes(*length) as usize) else { return };
        out.extend_from_slice(text);
        let (what, at, after) = match after {
            [what @ (SINCE | AROUND), after @ ..] => match after.split_first_chunk() {
                Some((at, after)) => (*what, Timestamp::from_microsecond(i64::from_le_bytes(*at)), after),
                None => return,
            },
            _ => return,
        };
        let tense = if what == SINCE { Tense::Since } else { Tense::Around };
        let told = tense.told(at.unwrap_or_default(), now);
        if told.bytes().any(|byte| byte == b'<') {
            // `<invalid>`, in the way JSON writes it.
            let mut quoted = Vec::new();
            escape_into(&mut quoted, &told);
            out.extend_from_slice(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        } else {
            out.extend_from_slice(told.as_bytes());
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::printer::Completed;

    #[test]
    fn a_packed_row_is_written_as_it_would_have_been_printed_then() {
        let at = Timestamp::from_second(1_000).expect("a time");
        let cells = vec![
            Cell::from("a\"b"),
            Cell::since("<1> (", Some(at), " ago\")"),
            Cell::age(Some(at)),
            Cell::from(3_i64),
            Cell::age(None),
        ];
        let row = PrintedRow { cells, completed: Some(Completed { reason: "R", message: "M" }) };
        let packed = pack(&row);
        for second in [1_001, 5_000, 900] {
            let now = Timestamp::from_second(second).expect("a time");
            let mut out = Vec::new();
            write(&mut out, &packed, now);
            let cells = crate::object::Value::Array(row.cells.iter().map(|cell| cell.value(now)).collect());
            let expected = format!(
                r#""cells":{},"conditions":[{{"type":"Completed","status":"True","reason":"R","message":"M"}}]"#,
                crate::object::to_string(&cells)
            );
            assert_eq!(String::from_utf8(out).expect("text"), expected);
        }
    }
}
