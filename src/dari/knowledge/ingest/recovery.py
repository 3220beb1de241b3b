"""What a new writer does first: end runs that were killed, remove what they left, bring the index up to the store."""

from __future__ import annotations

from dari.knowledge.ingest.writer import KnowledgeWriter


def recover(writer: KnowledgeWriter) -> None:
    """Each thing that had to be mended is a note; nothing to mend costs a millisecond."""
    journal = writer.store.journal
    killed = [run for run in journal.ingest_runs() if run.status == "running"]
    for run in killed:
        journal.end_run(run.run_no, "aborted", run.report)
        writer.notes.append(f"ingest run {run.run_no} of {run.started_at} was cut short: what it committed is kept")
    writer.catch_up()
    writer.purge_tombstones()
    if killed and (removed := remove_orphan_assets(writer)):
        writer.notes.append(f"{removed} stored files without a document were removed")


def remove_orphan_assets(writer: KnowledgeWriter) -> int:
    """Files that a kill left between writing them and their document."""
    kept = writer.backend.asset_ids()
    orphans = kept - writer.store.asset_ids() if kept else kept
    if orphans:
        writer.backend.remove_assets(orphans)
    return len(orphans)
