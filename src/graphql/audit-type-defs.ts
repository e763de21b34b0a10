import { AUDIT_ACTIONS, type AuditAction } from '../keys/audit/audit-entry.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../keys/page.ts';

const ACTION_MEANINGS: Readonly<Record<AuditAction, string>> = {
  CREATE: 'A key was created or restored.',
  UPDATE: 'A key was changed.',
  DELETE: 'A key was deleted.',
  ENABLE: 'A key was enabled.',
  DISABLE: 'A key was disabled.',
  ROTATE: 'A key got a new secret.',
  ROTATE_ACTIVATE: 'The grace period of the previous secret began.',
  ROTATE_FINISH: 'The rotation was finished: the previous secret no longer works.',
  ROTATE_ROLLBACK: 'The rotation was rolled back: the new secret no longer works.',
  ADOPT: 'The operator took over a key: no key is its creator any more.',
  IMPORT: 'A key was imported.',
  CONSENT_REQUEST: 'An application asked for a key.',
  CONSENT_APPROVE: 'Somebody agreed to what an application asked for.',
  CONSENT_DENY: 'Somebody refused what an application asked for.',
  CONSENT_EXCHANGE: 'An application got its key.',
  CONSENT_REPLAY: 'An application showed a code that was used before: the key that it gave is deleted.',
  CONSENT_REVOKE: 'An application has ended the key that it was given, or one of its secrets.',
  REFUSE: 'A request was refused. Each kind is recorded once in ten minutes, and its repetitions as a count.',
  PRUNE: 'The oldest entries of the log were deleted.',
  RESTORE: 'A backup was restored; with a key, that key became what the backup has of it.',
  LEAK: 'A scan of files has found a working secret of a key.',
  CONTAIN: 'What a key did to others was undone. Each key that changed has entries of its own beside this one.',
};

/** The schema for the audit log. */
export const AUDIT_TYPE_DEFS = `
extend type Query {
  """
  Who did what, newest first. Keys that may not read all keys get what is about or by keys that they may read, and what
  concerns no key; names of others are null.
  """
  auditLog(
    "The maximum number of entries, up to ${MAX_PAGE_SIZE}."
    first: Int = ${DEFAULT_PAGE_SIZE}
    "The endCursor of the previous page."
    after: String
    "Only entries with a lower number."
    beforeNumber: Int
    "Only entries with a higher number, oldest first: what was written since."
    afterNumber: Int
    "The id or name of the key that was changed."
    apiKey: String @cost(weight: 100)
    "The id or name of the key, or the name of the user, that did it."
    actor: String @cost(weight: 6000)
    "What was done."
    action: AuditAction @cost(weight: 6000)
    "Only entries from this time on."
    since: DateTime @cost(weight: 6000)
    "Only entries before this time."
    until: DateTime @cost(weight: 6000)
  ): AuditLogConnection
    @requires(resource: LOGS, action: READ_ANY)
    @cost(weight: 4)
    @listSize(assumedSize: ${MAX_PAGE_SIZE}, slicingArguments: ["first"])
}

"""What was done."""
enum AuditAction {
${AUDIT_ACTIONS.map((action) => `  "${ACTION_MEANINGS[action]}"\n  ${action}`).join('\n')}
}

"""A kind of actor."""
enum AuditActorKind {
  "A user of the command line."
  CLI
  "A key."
  KEY
  "A request without a valid key."
  REQUEST
  "The policy of the installation, by itself."
  POLICY
}

"""Who did it."""
type AuditActor {
  "The kind of actor."
  kind: AuditActorKind!
  "The id of the key."
  keyId: ID
  "The name of the user or key, the prefix of the secret that was refused, or the rule of the policy."
  name: String
}

"""A field of a key that was changed."""
type AuditChange {
  "The field."
  field: String!
  "The old value as JSON; null if there was no key."
  before: String
  "The new value as JSON; null if there is no key any more."
  after: String
}

"""An entry of the audit log. It never holds a secret."""
type AuditEntry {
  "Its number in the log, counted from 1 without gaps."
  number: Int!
  "When it was done."
  at: DateTime!
  "Who did it."
  actor: AuditActor!
  "What was done."
  action: AuditAction!
  "The id of the key that was changed."
  keyId: ID
  "The name of that key at the time."
  keyName: String
  "What changed."
  changes: [AuditChange!]! @listSize(assumedSize: 4)
  "The client's address, of a refused request, and of what an application asks for."
  address: String
  "SHA-256 of this entry and the hash of the previous one."
  hash: String!
}

"""A page of the audit log (Relay cursor connections)."""
type AuditLogConnection {
  "The entries with their cursors."
  edges: [AuditLogEdge!]!
  "The position of the page in the log."
  pageInfo: PageInfo!
}

"""An entry in a page."""
type AuditLogEdge {
  "The entry."
  node: AuditEntry!
  "The cursor of this entry."
  cursor: String!
}
`;
