import { formatCount } from '../output.ts';
import type { AuditVerification } from '../../keys/audit/index.ts';
import type { KeptAspect, NamedKey, RestorePlan, Since } from '../../keys/transfer/index.ts';
import { formatTime, printable } from '../../keys/basics/index.ts';
import type { BackupContents } from '../../store/backup/back-up-store.ts';

/** What a backup has, as JSON: a closed list of fields. */
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

/** Why an audit log is not known to be whole. */
export function describeProblem(log: AuditVerification): string | undefined {
  if ('entries' in log) return undefined;
  if ('broken' in log) return `The audit log is broken: entry ${log.broken} ${log.reason}.`;
  return `The audit log could not be verified: entry ${log.unverifiable} ${log.reason}.`;
}

/** How many keys a list shows at a terminal, and in text. JSON has all of them. */
const SHOWN = 100;

const KEPT_TEXTS: Readonly<Record<KeptAspect, string>> = {
  enabled: 'stays disabled',
  secret: 'keeps its newer secret',
  grants: 'keeps its present grants',
  expiresAt: 'keeps its earlier expiry',
  limits: 'keeps its stricter limits',
  allowFrom: 'keeps its narrower networks',
  damaged: 'is damaged in the store, and comes back disabled',
};

/** What a restore does to keys, as JSON: a closed list of fields. */
export function planJson(plan: RestorePlan): object {
  const { deleted, kept, broughtBack, created, changed, damaged, altered, logDiffersFrom } = plan;
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

/** What a restore does to keys, for somebody who is to agree to it. */
export function planLines(plan: RestorePlan): string[] {
  const { deleted, kept, broughtBack, created, changed, damaged, altered, logDiffersFrom } = plan;
  return [
    ...(logDiffersFrom === null
      ? []
      : [
          `Its audit log is not that of the store from entry ${logDiffersFrom} on: it was changed, or an older ` +
            'backup was put in the place of the store since.',
        ]),
    ...list(
      altered,
      (count) => `${keys(count)} that would get more ${isOrAre(count)} not as the audit log of the backup says:`,
      ({ reason }) => reason,
    ),
    ...list(
      deleted,
      (count) => `${keys(count)} of the backup ${was(count)} deleted since, and ${stay(count)} deleted:`,
      ({ since }) => `deleted ${sinceText(since)}`,
    ),
    ...list(
      kept,
      (count) => `${keys(count)} ${has(count)} less than in the backup, and ${count === 1 ? 'gets' : 'get'} no more:`,
      (key) => `${key.kept.map((field) => KEPT_TEXTS[field]).join(', ')} (${sinceText(key.since)})`,
    ),
    ...list(broughtBack, (count) => `${keys(count)} ${isOrAre(count)} brought back as in the backup:`),
    ...list(created, (count) => `${keys(count)} ${was(count)} created since, and will be deleted:`),
    ...list(damaged, (count) => `${keys(count)} ${isOrAre(count)} damaged in the backup, and left alone:`),
    ...(changed.length > 0 ? [`${keys(changed.length)} will be as in the backup again.`] : []),
  ];
}

export function changesNothing({ broughtBack, created, changed }: RestorePlan): boolean {
  return broughtBack.length + created.length + changed.length === 0;
}

function list<Key extends NamedKey>(
  items: readonly Key[],
  head: (count: number) => string,
  detail?: (key: Key) => string,
): string[] {
  if (items.length === 0) return [];
  const lines = items.slice(0, SHOWN).map((key) => {
    const text = `  ${printable(key.name, 100)} (${key.prefix})`;
    return detail ? `${text} ${detail(key)}` : text;
  });
  const rest = items.length - lines.length;
  return [head(items.length), ...lines, ...(rest > 0 ? [`  and ${rest} more`] : [])];
}

function keys(count: number): string {
  return formatCount(count, 'key', 'keys');
}

function isOrAre(count: number): string {
  return count === 1 ? 'is' : 'are';
}

function was(count: number): string {
  return count === 1 ? 'was' : 'were';
}

function has(count: number): string {
  return count === 1 ? 'has' : 'have';
}

function stay(count: number): string {
  return count === 1 ? 'stays' : 'stay';
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
