//! What the writer answers besides writes.

use tokio::sync::oneshot;

use super::{
    Ask, reads,
    store::Trouble,
    watchers::{self, Replayed, WatchAsk},
    writer::{State, Writer},
};
use crate::storage::{Revision, StorageError};

impl Writer {
    pub(super) fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Read(ask) => match self.store() {
                Ok(_) => self.reads.begin(ask, &self.index, self.current, self.compacted),
                Err(why) => drop(ask.reply.send(Err(why))),
            },
            Ask::Watch(ask) => self.watch(ask),
            Ask::Compact(revision, reply) => self.ask_compaction(revision, reply),
            Ask::Health(reply) => drop(reply.send(self.health())),
            Ask::Tune { reserve_bytes, retention, reply } => {
                self.room.resize(reserve_bytes);
                self.limit_wal();
                self.compaction.set_retention(retention);
                let _ = reply.send(());
            }
            Ask::Relocate { directory, files, reply } => {
                let moved = self.relocate(&directory);
                drop(files);
                let _ = reply.send(moved);
            }
            #[cfg(test)]
            Ask::Inspect(look) => look(self),
        }
    }

    fn health(&mut self) -> Result<(), StorageError> {
        self.write_refusal()?;
        self.room.refusal().map_or(Ok(()), Err)
    }

    fn watch(&mut self, ask: WatchAsk) {
        let step = self.begin_watch(&ask);
        if step == Ok(Replayed::Live) {
            self.watchers.add(ask.prefix, ask.events, &self.shared.stats);
        }
        let _ = ask.reply.send(step);
    }

    fn begin_watch(&mut self, ask: &WatchAsk) -> Result<Replayed, StorageError> {
        let (current, compacted) = (self.current, self.compacted);
        if ask.after < compacted {
            return Err(StorageError::Compacted(compacted));
        }
        // Revision 1 is an empty store's: everybody may have seen it.
        if ask.after > current {
            return Err(StorageError::Future { asked: ask.after, current });
        }
        if ask.after == current {
            return Ok(Replayed::Live);
        }
        match watchers::replay(ask, self.store()?, current) {
            Ok(seen) if seen == current => Ok(Replayed::Live),
            // A store that nothing was written to has a revision, but no row of it.
            Ok(seen) if current == super::FIRST_REVISION && seen == ask.after => Ok(Replayed::Live),
            Ok(seen) => Ok(Replayed::More(seen)),
            Err(trouble @ (Trouble::Damaged(_) | Trouble::Busy(_))) => Err(reads::read_error(&trouble)),
            Err(trouble) => Err(self.failed(trouble)),
        }
    }

    pub(super) fn read(&mut self) {
        let State::Open(store) = &self.state else {
            return;
        };
        if let Err(trouble) = self.reads.step(store) {
            self.failed(trouble);
        }
    }

    fn ask_compaction(&mut self, revision: Revision, reply: oneshot::Sender<Result<(), StorageError>>) {
        if revision > self.current {
            let _ = reply.send(Err(StorageError::Future { asked: revision, current: self.current }));
        } else if revision <= self.compacted {
            let _ = reply.send(Ok(()));
        } else if let Err(why) = self.write_refusal() {
            let _ = reply.send(Err(why));
        } else {
            self.compaction.ask(revision, reply);
        }
    }
}
