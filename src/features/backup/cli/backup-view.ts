import { formatCount } from '../../../cli/output.ts';
import type { AuditVerification } from '../../../keys/audit/index.ts';
import { mapFields, wideningFields } from '../../../keys/key/index.ts';
import type { NamedKey, RestorePlan, Since } from '../restore.ts';
import type { KeptAspect } from '../restored-key.ts';
import { formatList, formatTime, printable } from '../../../keys/basics/index.ts';
import type { BackupContents } from '../back-up-store.ts';

/** The contents of a backup as JSON. The list of fields is fixed. */
export function contentsJson({ keys, auditEntries, schema, head, log }: BackupContents): object {
  return {
    keys,
    auditEntries,
    schema,
    head: head ? `${head.number}:${head.hash}` : null,
    log: 'entries' in log ? 'whole' : 'broken' in log ? 'broken' : 'unverifiable',
    problem: describeProblem(log) ?? null,
  };
}

/** `12 keys and 40 entries of the audit log`. */
export function contentsText({ keys, auditEntries }: BackupContents): string {
  return `${formatCount(keys, 'key', 'keys')} and ${formatCount(auditEntries, 'entry', 'entries')} of the audit log`;
}

/** The reason an audit log could not be verified. */
export function describeProblem(log: AuditVerification): string | undefined {
  if ('entries' in log) return undefined;
  if ('broken' in log) return `The audit log is broken: entry ${log.broken} ${log.reason}.`;
  return `The audit log could not be verified: entry ${log.unverifiable} ${log.reason}.`;
}

/** Maximum number of keys in a list at a terminal and in text. JSON has all of them. */
const SHOWN = 100;

const KEPT_TEXTS: Readonly<Record<KeptAspect, string>> = {
  enabled: 'stays disabled',
  secret: 'keeps its newer secret',
  grants: 'keeps its present grants',
  expiresAt: 'keeps its earlier expiry',
  ...mapFields(wideningFields, ({ widens }) => widens!.kept),
  damaged: 'is damaged in the store, and comes back disabled',
};

/** The effects of a restore on keys as JSON, with a fixed list of fields. Without a comparison, there are none. */
export function planJson({
  deleted = [],
  kept = [],
  broughtBack = [],
  created = [],
  changed = [],
  damaged = [],
  altered = [],
  logDiffersFrom = null,
}: Partial<RestorePlan> = {}): object {
  return {
    deleted: deleted.map(({ status, since, ...key }) => ({ ...named(key), status, ...sinceJson(since) })),
    kept: kept.map(({ kept: fields, since, ...key }) => ({ ...named(key), fields, ...sinceJson(since) })),
    broughtBack: broughtBack.map(named),
    created: created.map(named),
    changed: changed.length,
    damaged: damaged.map(named),
    altered: altered.map(({ reason, ...key }) => ({ ...named(key), reason })),
    logDiffersFrom,
  };
}

/** The effects of a restore on keys, to confirm. */
export function planLines(plan: RestorePlan): string[] {
  const { deleted, kept, broughtBack, created, changed, damaged, altered, missingFields, logDiffersFrom } = plan;
  return [
    ...(logDiffersFrom === null
      ? []
      : [
          `Its audit log differs from that of the store from entry ${logDiffersFrom} on. Either the backup was changed, or ` +
            'the store itself was replaced by an older backup since.',
        ]),
    ...list(
      altered,
      'key would get more access, but differs from what the audit log of the backup says:',
      'keys would get more access, but differ from what the audit log of the backup says:',
      ({ reason }) => reason,
    ),
    ...list(
      deleted,
      'key of the backup was deleted since, and stays deleted:',
      'keys of the backup were deleted since, and stay deleted:',
      ({ since }) => `deleted ${sinceText(since)}`,
    ),
    ...list(
      kept,
      'key lost access since the backup, and does not get it back:',
      'keys lost access since the backup, and do not get it back:',
      (key) => `${key.kept.map((field) => KEPT_TEXTS[field]).join(', ')} (${sinceText(key.since)})`,
    ),
    ...list(broughtBack, 'key is restored as it is in the backup:', 'keys are restored as they are in the backup:'),
    ...list(created, 'key was created since, and will be deleted:', 'keys were created since, and will be deleted:'),
    ...list(
      damaged,
      'key is damaged in the backup, and stays as it is in the store:',
      'keys are damaged in the backup, and stay as they are in the store:',
    ),
    ...(changed.length > 0 ? [`${formatCount(changed.length, 'key', 'keys')} will be as in the backup again.`] : []),
    ...(missingFields.size > 0
      ? [
          'Values of these fields are not restored, because their plugins are not installed: ' +
            `${printable(formatList([...missingFields]), 200)}. To restore them, install the plugins first.`,
        ]
      : []),
  ];
}

export function changesNothing({ broughtBack, created, changed }: RestorePlan): boolean {
  return broughtBack.length + created.length + changed.length === 0;
}

/** Keys in lines below how many they are: what is said of `one`, or of `many`. */
function list<Key extends NamedKey>(
  items: readonly Key[],
  one: string,
  many: string,
  detail?: (key: Key) => string,
): string[] {
  if (items.length === 0) return [];
  const lines = items.slice(0, SHOWN).map((key) => {
    const text = `  ${printable(key.name, 100)} (${key.prefix})`;
    return detail ? `${text} ${detail(key)}` : text;
  });
  const rest = items.length - lines.length;
  return [formatCount(items.length, one, many), ...lines, ...(rest > 0 ? [`  and ${rest} more`] : [])];
}

function named({ id, name, prefix }: NamedKey): NamedKey {
  return { id, name, prefix };
}

function sinceJson(since: Since): object {
  return { at: since ? formatTime(since.at) : null, by: since?.actor ?? null };
}

function sinceText(since: Since): string {
  if (!since) return 'at an unknown time';
  const { kind, name } = since.actor;
  return `${formatTime(since.at)} by ${kind.toLowerCase()} ${name === null ? '-' : printable(name, 100)}`;
}
