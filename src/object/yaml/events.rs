//! Tokens to events: which node begins or ends, with its anchor and tag (go-yaml `parserc.go`).

use super::scanner::{Kind, Mark, Problem, Scan, Scanner};

/// What a node says of itself.
#[derive(Debug, Default)]
pub struct Head {
    pub anchor: Option<String>,
    pub tag: String,
    pub line: usize,
}

#[derive(Debug)]
pub enum Event {
    DocumentStart,
    DocumentEnd,
    StreamEnd,
    Alias {
        name: String,
        line: usize,
    },
    /// `implicit`: the text alone decides what it is.
    Scalar {
        head: Head,
        value: String,
        implicit: bool,
    },
    SequenceStart(Head),
    SequenceEnd,
    MappingStart(Head),
    MappingEnd,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    StreamStart,
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceFirstEntry,
    BlockSequenceEntry,
    IndentlessSequenceEntry,
    BlockMappingFirstKey,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceFirstEntry,
    FlowSequenceEntry,
    FlowSequenceEntryMappingKey,
    FlowSequenceEntryMappingValue,
    FlowSequenceEntryMappingEnd,
    FlowMappingFirstKey,
    FlowMappingKey,
    FlowMappingValue,
    FlowMappingEmptyValue,
    End,
}

/// Only its kind, for decisions; the token stays where it is.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    Directive,
    DocumentStart,
    DocumentEnd,
    StreamEnd,
    BlockEntry,
    FlowEntry,
    BlockEnd,
    FlowSequenceEnd,
    FlowMappingEnd,
    Key,
    Value,
    Other,
}

pub struct Parser<'a> {
    pub scanner: Scanner<'a>,
    state: State,
    states: Vec<State>,
    marks: Vec<Mark>,
    tag_directives: Vec<(String, String)>,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            scanner: Scanner::new(text),
            state: State::StreamStart,
            states: Vec::new(),
            marks: Vec::new(),
            tag_directives: Vec::new(),
        }
    }

    pub fn next(&mut self) -> Scan<Event> {
        match self.state {
            State::StreamStart => {
                self.scanner.peek()?;
                self.scanner.skip_token();
                self.state = State::ImplicitDocumentStart;
                self.next()
            }
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(true, false),
            State::BlockSequenceFirstEntry => self.first().and_then(|()| self.block_sequence_entry()),
            State::BlockSequenceEntry => self.block_sequence_entry(),
            State::IndentlessSequenceEntry => self.indentless_sequence_entry(),
            State::BlockMappingFirstKey => self.first().and_then(|()| self.block_mapping_key()),
            State::BlockMappingKey => self.block_mapping_key(),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceFirstEntry => self.first().and_then(|()| self.flow_sequence_entry(true)),
            State::FlowSequenceEntry => self.flow_sequence_entry(false),
            State::FlowSequenceEntryMappingKey => self.flow_sequence_entry_mapping_key(),
            State::FlowSequenceEntryMappingValue => self.flow_sequence_entry_mapping_value(),
            State::FlowSequenceEntryMappingEnd => {
                self.state = State::FlowSequenceEntry;
                Ok(Event::MappingEnd)
            }
            State::FlowMappingFirstKey => self.first().and_then(|()| self.flow_mapping_key(true)),
            State::FlowMappingKey => self.flow_mapping_key(false),
            State::FlowMappingValue => self.flow_mapping_value(false),
            State::FlowMappingEmptyValue => self.flow_mapping_value(true),
            State::End => Ok(Event::StreamEnd),
        }
    }

    fn peek(&mut self) -> Scan<(Next, Mark, Mark)> {
        let token = self.scanner.peek()?;
        let next = match token.kind {
            Kind::Version(..) | Kind::TagDirective { .. } => Next::Directive,
            Kind::DocumentStart => Next::DocumentStart,
            Kind::DocumentEnd => Next::DocumentEnd,
            Kind::StreamEnd => Next::StreamEnd,
            Kind::BlockEntry => Next::BlockEntry,
            Kind::FlowEntry => Next::FlowEntry,
            Kind::BlockEnd => Next::BlockEnd,
            Kind::FlowSequenceEnd => Next::FlowSequenceEnd,
            Kind::FlowMappingEnd => Next::FlowMappingEnd,
            Kind::Key => Next::Key,
            Kind::Value => Next::Value,
            _ => Next::Other,
        };
        Ok((next, token.start, token.end))
    }

    /// Skips the next token and looks at the one after.
    fn advance(&mut self) -> Scan<(Next, Mark, Mark)> {
        self.scanner.skip_token();
        self.peek()
    }

    /// Remembers where a collection begins, for errors.
    fn first(&mut self) -> Scan<()> {
        let (_, start, _) = self.peek()?;
        self.marks.push(start);
        self.scanner.skip_token();
        Ok(())
    }

    fn pop(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    fn end(&mut self, event: Event) -> Scan<Event> {
        self.scanner.skip_token();
        self.marks.pop();
        self.pop();
        Ok(event)
    }

    /// A node, after which the parser is in `state`.
    fn node_then(&mut self, state: State, block: bool, indentless: bool) -> Scan<Event> {
        self.states.push(state);
        self.node(block, indentless)
    }

    fn empty_then(&mut self, state: State, mark: Mark) -> Scan<Event> {
        self.state = state;
        Ok(empty(mark))
    }

    fn unexpected(&mut self, at: Mark, text: &str) -> Scan<Event> {
        let context = self.marks.pop().unwrap_or_default();
        Err(Problem::parsing(at, context, text))
    }

    fn document_start(&mut self, implicit: bool) -> Scan<Event> {
        let (mut next, _, _) = self.peek()?;
        while !implicit && next == Next::DocumentEnd {
            (next, ..) = self.advance()?;
        }
        match next {
            Next::StreamEnd => {
                self.state = State::End;
                self.scanner.skip_token();
                Ok(Event::StreamEnd)
            }
            Next::Directive | Next::DocumentStart => self.explicit_document(),
            _ if implicit => {
                self.directives()?;
                self.states.push(State::DocumentEnd);
                self.state = State::BlockNode;
                Ok(Event::DocumentStart)
            }
            _ => self.explicit_document(),
        }
    }

    fn explicit_document(&mut self) -> Scan<Event> {
        self.directives()?;
        let (next, start, _) = self.peek()?;
        if next != Next::DocumentStart {
            return Err(Problem::parsing(start, Mark::default(), "did not find expected <document start>"));
        }
        self.scanner.skip_token();
        self.states.push(State::DocumentEnd);
        self.state = State::DocumentContent;
        Ok(Event::DocumentStart)
    }

    fn directives(&mut self) -> Scan<()> {
        let mut versions = 0;
        loop {
            let token = self.scanner.peek()?;
            let start = token.start;
            let problem = |text: &str| Err(Problem::parsing(start, Mark::default(), text));
            match &mut token.kind {
                Kind::Version(..) if versions > 0 => return problem("found duplicate %YAML directive"),
                Kind::Version(1, 1) => versions += 1,
                Kind::Version(..) => return problem("found incompatible YAML document"),
                Kind::TagDirective { handle, prefix } => {
                    let (handle, prefix) = (std::mem::take(handle), std::mem::take(prefix));
                    if self.tag_directives.iter().any(|(known, _)| *known == handle) {
                        return problem("found duplicate %TAG directive");
                    }
                    self.tag_directives.push((handle, prefix));
                }
                _ => break,
            }
            self.scanner.skip_token();
        }
        for (handle, prefix) in [("!", "!"), ("!!", "tag:yaml.org,2002:")] {
            if !self.tag_directives.iter().any(|(known, _)| known == handle) {
                self.tag_directives.push((handle.to_owned(), prefix.to_owned()));
            }
        }
        Ok(())
    }

    fn document_content(&mut self) -> Scan<Event> {
        let (next, start, _) = self.peek()?;
        match next {
            Next::Directive | Next::DocumentStart | Next::DocumentEnd | Next::StreamEnd => {
                self.pop();
                Ok(empty(start))
            }
            _ => self.node(true, false),
        }
    }

    fn document_end(&mut self) -> Scan<Event> {
        if self.peek()?.0 == Next::DocumentEnd {
            self.scanner.skip_token();
        }
        self.tag_directives.clear();
        self.state = State::DocumentStart;
        Ok(Event::DocumentEnd)
    }

    /// Anchor and tag in either order, and where the node begins.
    fn head(&mut self) -> Scan<(Head, Mark)> {
        let mut head = Head::default();
        let (mut tag, mut start): (Option<(String, String, Mark)>, Option<Mark>) = (None, None);
        loop {
            let token = self.scanner.peek()?;
            match &mut token.kind {
                Kind::Anchor(name) if head.anchor.is_none() => head.anchor = Some(std::mem::take(name)),
                Kind::Tag { handle, suffix } if tag.is_none() => {
                    tag = Some((std::mem::take(handle), std::mem::take(suffix), token.start));
                }
                _ => {
                    let begin = start.unwrap_or(token.start);
                    head.line = begin.line;
                    if let Some((handle, suffix, at)) = tag {
                        head.tag = self.resolve_tag(handle, suffix, at, begin)?;
                    }
                    return Ok((head, begin));
                }
            }
            start = start.or(Some(token.start));
            self.scanner.skip_token();
        }
    }

    fn resolve_tag(&self, handle: String, suffix: String, at: Mark, context: Mark) -> Scan<String> {
        if handle.is_empty() {
            return Ok(suffix);
        }
        match self.tag_directives.iter().find(|(known, _)| *known == handle) {
            Some((_, prefix)) => Ok(format!("{prefix}{suffix}")),
            None => Err(Problem::parsing(at, context, "found undefined tag handle")),
        }
    }

    fn node(&mut self, block: bool, indentless: bool) -> Scan<Event> {
        let token = self.scanner.peek()?;
        if let Kind::Alias(name) = &mut token.kind {
            let event = Event::Alias { name: std::mem::take(name), line: token.start.line };
            self.scanner.skip_token();
            self.pop();
            return Ok(event);
        }
        let (head, start) = self.head()?;
        let token = self.scanner.peek()?;
        let at = token.start;
        match &mut token.kind {
            Kind::BlockEntry if indentless => {
                self.state = State::IndentlessSequenceEntry;
                Ok(Event::SequenceStart(head))
            }
            Kind::Scalar { value, plain } => {
                let implicit = head.tag.is_empty() && *plain || head.tag == "!";
                let event = Event::Scalar { head, value: std::mem::take(value), implicit };
                self.scanner.skip_token();
                self.pop();
                Ok(event)
            }
            Kind::FlowSequenceStart => {
                self.state = State::FlowSequenceFirstEntry;
                Ok(Event::SequenceStart(head))
            }
            Kind::FlowMappingStart => {
                self.state = State::FlowMappingFirstKey;
                Ok(Event::MappingStart(head))
            }
            Kind::BlockSequenceStart if block => {
                self.state = State::BlockSequenceFirstEntry;
                Ok(Event::SequenceStart(head))
            }
            Kind::BlockMappingStart if block => {
                self.state = State::BlockMappingFirstKey;
                Ok(Event::MappingStart(head))
            }
            _ if head.anchor.is_some() || !head.tag.is_empty() => {
                let implicit = head.tag.is_empty();
                self.pop();
                Ok(Event::Scalar { head, value: String::new(), implicit })
            }
            _ => Err(Problem::parsing(at, start, "did not find expected node content")),
        }
    }

    fn block_sequence_entry(&mut self) -> Scan<Event> {
        let (next, start, end) = self.peek()?;
        match next {
            Next::BlockEntry => match self.advance()?.0 {
                Next::BlockEntry | Next::BlockEnd => self.empty_then(State::BlockSequenceEntry, end),
                _ => self.node_then(State::BlockSequenceEntry, true, false),
            },
            Next::BlockEnd => self.end(Event::SequenceEnd),
            _ => self.unexpected(start, "did not find expected '-' indicator"),
        }
    }

    fn indentless_sequence_entry(&mut self) -> Scan<Event> {
        let (next, _, end) = self.peek()?;
        if next != Next::BlockEntry {
            self.pop();
            return Ok(Event::SequenceEnd);
        }
        match self.advance()?.0 {
            Next::BlockEntry | Next::Key | Next::Value | Next::BlockEnd => {
                self.empty_then(State::IndentlessSequenceEntry, end)
            }
            _ => self.node_then(State::IndentlessSequenceEntry, true, false),
        }
    }

    fn block_mapping_key(&mut self) -> Scan<Event> {
        let (next, start, end) = self.peek()?;
        match next {
            Next::Key => match self.advance()?.0 {
                Next::Key | Next::Value | Next::BlockEnd => self.empty_then(State::BlockMappingValue, end),
                _ => self.node_then(State::BlockMappingValue, true, true),
            },
            Next::BlockEnd => self.end(Event::MappingEnd),
            _ => self.unexpected(start, "did not find expected key"),
        }
    }

    fn block_mapping_value(&mut self) -> Scan<Event> {
        let (next, start, end) = self.peek()?;
        if next != Next::Value {
            return self.empty_then(State::BlockMappingKey, start);
        }
        match self.advance()?.0 {
            Next::Key | Next::Value | Next::BlockEnd => self.empty_then(State::BlockMappingKey, end),
            _ => self.node_then(State::BlockMappingKey, true, true),
        }
    }

    fn flow_sequence_entry(&mut self, first: bool) -> Scan<Event> {
        let (mut next, start, _) = self.peek()?;
        if next != Next::FlowSequenceEnd && !first {
            if next != Next::FlowEntry {
                return self.unexpected(start, "did not find expected ',' or ']'");
            }
            (next, ..) = self.advance()?;
        }
        match next {
            Next::FlowSequenceEnd => self.end(Event::SequenceEnd),
            Next::Key => {
                let (_, start, _) = self.peek()?;
                self.scanner.skip_token();
                self.state = State::FlowSequenceEntryMappingKey;
                Ok(Event::MappingStart(Head { line: start.line, ..Head::default() }))
            }
            _ => self.node_then(State::FlowSequenceEntry, false, false),
        }
    }

    fn flow_sequence_entry_mapping_key(&mut self) -> Scan<Event> {
        let (next, _, end) = self.peek()?;
        match next {
            Next::Value | Next::FlowEntry | Next::FlowSequenceEnd => {
                self.scanner.skip_token();
                self.empty_then(State::FlowSequenceEntryMappingValue, end)
            }
            _ => self.node_then(State::FlowSequenceEntryMappingValue, false, false),
        }
    }

    fn flow_sequence_entry_mapping_value(&mut self) -> Scan<Event> {
        let (mut next, mut start, _) = self.peek()?;
        if next == Next::Value {
            (next, start, _) = self.advance()?;
            if !matches!(next, Next::FlowEntry | Next::FlowSequenceEnd) {
                return self.node_then(State::FlowSequenceEntryMappingEnd, false, false);
            }
        }
        self.empty_then(State::FlowSequenceEntryMappingEnd, start)
    }

    fn flow_mapping_key(&mut self, first: bool) -> Scan<Event> {
        let (mut next, start, _) = self.peek()?;
        if next != Next::FlowMappingEnd && !first {
            if next != Next::FlowEntry {
                return self.unexpected(start, "did not find expected ',' or '}'");
            }
            (next, ..) = self.advance()?;
        }
        match next {
            Next::FlowMappingEnd => self.end(Event::MappingEnd),
            Next::Key => {
                let (next, start, _) = self.advance()?;
                match next {
                    Next::Value | Next::FlowEntry | Next::FlowMappingEnd => {
                        self.empty_then(State::FlowMappingValue, start)
                    }
                    _ => self.node_then(State::FlowMappingValue, false, false),
                }
            }
            _ => self.node_then(State::FlowMappingEmptyValue, false, false),
        }
    }

    fn flow_mapping_value(&mut self, empty: bool) -> Scan<Event> {
        let (mut next, mut start, _) = self.peek()?;
        if !empty && next == Next::Value {
            (next, start, _) = self.advance()?;
            if !matches!(next, Next::FlowEntry | Next::FlowMappingEnd) {
                return self.node_then(State::FlowMappingKey, false, false);
            }
        }
        self.empty_then(State::FlowMappingKey, start)
    }
}

fn empty(mark: Mark) -> Event {
    let head = Head { line: mark.line, ..Head::default() };
    Event::Scalar { head, value: String::new(), implicit: true }
}
