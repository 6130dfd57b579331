//! What the Monitor compares the board with may be older than the board.

use std::sync::Arc;

use plimsoll_core::id::{Attempt, GroupId, JobId, NodeId, Slot, TaskId};
use plimsoll_core::messages::{Audit, Finding, NodeAudit, NodeEvent, NodeView};
use plimsoll_core::resources::Resources;
use plimsoll_core::spec::{Availability, NodeFacts, NodeState};

use crate::Board;

const NODE: NodeId = NodeId(0);

fn added(session: u64) -> NodeEvent {
    NodeEvent::Added { node: NODE, name: "n".to_owned(), session }
}

fn paused() -> NodeState {
    NodeState { availability: Availability::Pause, ..NodeState::default() }
}

/// What the ledger says of the node of this session, with so many attempts.
fn audit(session: u64, state: NodeState, attempts: u32) -> Audit {
    let view = NodeView {
        version: 1,
        facts: Arc::new(NodeFacts { name: "n".into(), ..NodeFacts::default() }),
        capacity: Resources::new(),
        reserved: Resources::new().into(),
        open: true,
        state,
        breakdown: None,
    };
    let task = |index| TaskId { group: GroupId::new(JobId(1), 0), role: 0, index };
    let live = (0..attempts).map(|index| Attempt { task: task(index), number: 1, slot: Slot(index) });
    let node = NodeAudit { node: NODE, session, view, free: Resources::new(), live: live.collect() };
    Audit { first: NODE, nodes: vec![node], next: None }
}

fn stands(board: &Board) -> (NodeState, u64) {
    let node = board.node("n").expect("it is there");
    (node.state, node.live)
}

/// Goal: each part of the board is compared with what was said on the same way, so that news that came on the
/// other one meanwhile is no finding and is not undone.
#[test]
fn what_was_said_before_the_board_changed_does_not_change_it_back() {
    let board = Board::default();
    board.note_node(&added(5));
    board.note_node(&NodeEvent::State { node: NODE, state: paused() });
    assert_eq!(board.compare_attempts(&audit(5, NodeState::default(), 0)), []);
    assert_eq!(board.compare_states(&audit(5, paused(), 3)), []);
    assert_eq!(stands(&board), (paused(), 0));
    board.note_node(&NodeEvent::Removed { node: NODE, name: "n".to_owned() });
    board.note_node(&added(6));
    assert_eq!(board.compare_attempts(&audit(5, paused(), 3)), [], "that was of another node");
    assert_eq!(stands(&board), (NodeState::default(), 0));
}

#[test]
fn what_is_wrong_on_the_board_is_found_and_mended() {
    let board = Board::default();
    board.note_node(&added(5));
    assert_eq!(board.compare_states(&audit(5, paused(), 2)), [Finding::WrongBoard(NODE)]);
    assert_eq!(board.compare_attempts(&audit(5, paused(), 2)), [Finding::WrongBoard(NODE)]);
    assert_eq!(stands(&board), (paused(), 2));
}
