//! Events to a graph of nodes: aliases point at what they mean.

use std::collections::HashMap;

use super::{
    events::{Event, Head, Parser},
    scanner::{Problem, Scan},
};

pub type NodeId = usize;

#[derive(Debug)]
pub enum Content {
    Scalar {
        value: String,
        implicit: bool,
    },
    Sequence(Vec<NodeId>),
    /// Keys and values in turn.
    Mapping(Vec<NodeId>),
    Alias {
        name: String,
        target: NodeId,
    },
}

#[derive(Debug)]
pub struct Node {
    /// Counted from 0.
    pub line: usize,
    pub tag: String,
    pub content: Content,
}

/// The nodes of one document and its root; none where the stream is empty.
pub fn compose(parser: &mut Parser<'_>) -> Scan<(Vec<Node>, Option<NodeId>)> {
    let mut composer = Composer::default();
    loop {
        match parser.next()? {
            Event::DocumentStart => {}
            // What comes after the first document is not looked at.
            Event::DocumentEnd | Event::StreamEnd => return Ok((composer.nodes, composer.root)),
            event => composer.take(event)?,
        }
    }
}

#[derive(Default)]
struct Composer {
    nodes: Vec<Node>,
    open: Vec<NodeId>,
    anchors: HashMap<String, NodeId>,
    root: Option<NodeId>,
}

impl Composer {
    fn take(&mut self, event: Event) -> Scan<()> {
        match event {
            Event::Scalar { head, value, implicit } => {
                self.add(head, Content::Scalar { value, implicit });
            }
            Event::Alias { name, line } => {
                let Some(target) = self.anchors.get(&name).copied() else {
                    return Err(Problem::plain(format!("unknown anchor '{name}' referenced")));
                };
                self.add(Head { line, ..Head::default() }, Content::Alias { name, target });
            }
            Event::SequenceStart(head) => {
                let id = self.add(head, Content::Sequence(Vec::new()));
                self.open.push(id);
            }
            Event::MappingStart(head) => {
                let id = self.add(head, Content::Mapping(Vec::new()));
                self.open.push(id);
            }
            Event::SequenceEnd | Event::MappingEnd => drop(self.open.pop()),
            Event::DocumentStart | Event::DocumentEnd | Event::StreamEnd => {}
        }
        Ok(())
    }

    fn add(&mut self, head: Head, content: Content) -> NodeId {
        let id = self.nodes.len();
        // A collection's tag says nothing: what it holds decides.
        self.nodes.push(Node { line: head.line, tag: head.tag, content });
        if let Some(anchor) = head.anchor {
            self.anchors.insert(anchor, id);
        }
        let parent = self.open.last().and_then(|open| self.nodes.get_mut(*open));
        match parent.map(|parent| &mut parent.content) {
            Some(Content::Sequence(children) | Content::Mapping(children)) => children.push(id),
            _ => self.root = Some(id),
        }
        id
    }
}
