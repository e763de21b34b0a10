import type { AuditAction } from '../../../keys/audit/index.ts';
import { formOf, MAX_LINE_LENGTH, textOf } from '../../../keys/key/index.ts';
import { formatDuration, inOneLine, printable, readDate } from '../../../keys/basics/index.ts';
import { exactTime, formatCount, KeyLink, Time, wordsOfCode } from './notice.tsx';

/** GraphQL fields of an entry. */
export const AUDITED_FIELDS =
  'number at actor { kind keyId name } action keyId keyName address changes { field before after }';

/** An entry of the audit log, see `AuditEntry`. */
export interface AuditedEntry {
  number: number;
  at: string;
  actor: { kind: 'CLI' | 'KEY' | 'REQUEST' | 'POLICY'; keyId: string | null; name: string | null };
  action: AuditAction;
  keyId: string | null;
  keyName: string | null;
  address: string | null;
  changes: Change[];
}

/** The verb of each action, and its form for entries about no key. */
const VERBS: Readonly<Record<AuditAction, string | readonly [withKey: string, alone: string]>> = {
  CREATE: 'created',
  UPDATE: 'changed',
  DELETE: 'deleted',
  ENABLE: 'enabled',
  DISABLE: 'disabled',
  ROTATE: 'rotated',
  ROTATE_ACTIVATE: 'started the grace period of',
  ROTATE_FINISH: 'finished the rotation of',
  ROTATE_ROLLBACK: 'rolled back the rotation of',
  ADOPT: 'adopted',
  IMPORT: 'imported',
  CONSENT_REQUEST: 'requested a key',
  CONSENT_APPROVE: 'approved a request for a key',
  CONSENT_DENY: 'denied a request for a key',
  CONSENT_EXCHANGE: ['received', 'received a key'],
  CONSENT_REPLAY: ['reused a code or refresh token of', 'reused a code'],
  CONSENT_REVOKE: ['revoked', 'revoked a key'],
  FEDERATE: ['issued', 'issued a key'],
  REFUSE: ['was refused for', 'was refused'],
  PRUNE: 'deleted the oldest entries',
  RESTORE: ['restored', 'restored a backup'],
  LEAK: 'found a leaked secret of',
  CONTAIN: 'contained',
  REVIEW: 'attested a review of the keys',
  OBSERVE: 'allowed a request that a route would refuse',
};

const DAY_MS = 86_400_000;

/** Audit entries as sentences, by day, newest first. Equal refusals in a row become one sentence. */
export function AuditEntries({ root, now, entries }: { root: string; now: number; entries: readonly AuditedEntry[] }) {
  const days = Map.groupBy(entries, ({ at }) => at.slice(0, 10));
  return (
    <table class="list log">
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">Event</th>
        </tr>
      </thead>
      {Array.from(days, ([day, ofDay]) => (
        <tbody>
          <tr class="day">
            <th scope="rowgroup" colspan={2}>
              {dayText(day, now)}
            </th>
          </tr>
          {withEqualRefusals(ofDay).map((equal) => (
            <tr class={equal[0]!.action === 'REFUSE' ? 'refused' : undefined}>
              <th scope="row" title={`Entry ${equal[0]!.number}`}>
                <Time at={equal[0]!.at} now={now} />
              </th>
              <td>
                <Sentence root={root} equal={equal} />
              </td>
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  );
}

/** `Today`, `Yesterday`, or `Tuesday, January 1, 2030`. @param day such as `2030-01-01` */
function dayText(day: string, now: number): string {
  const [today, yesterday] = [now, now - DAY_MS].map((time) => new Date(time).toISOString().slice(0, 10));
  if (day === today) return 'Today';
  if (day === yesterday) return 'Yesterday';
  const date = { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric', timeZone: 'UTC' } as const;
  return new Date(`${day}T00:00:00Z`).toLocaleDateString('en-US', date);
}

/** Groups consecutive refusals that differ only in count and time. */
function withEqualRefusals(entries: readonly AuditedEntry[]): (readonly AuditedEntry[])[] {
  const rows: AuditedEntry[][] = [];
  for (const entry of entries) {
    const last = rows.at(-1);
    if (last && entry.action === 'REFUSE' && kindOf(last[0]!) === kindOf(entry)) last.push(entry);
    else rows.push([entry]);
  }
  return rows;
}

function kindOf({ actor, action, keyId, address, changes }: AuditedEntry): string {
  return JSON.stringify([actor, action, keyId, address, changes.filter(({ field }) => field !== 'count')]);
}

function Sentence({ root, equal }: { root: string; equal: readonly AuditedEntry[] }) {
  const [entry] = equal as [AuditedEntry];
  const { actor, action, keyId, keyName, address, changes } = entry;
  const isOwn = keyId !== null && keyId === actor.keyId;
  const hasKey = (keyId ?? keyName) !== null && !(isOwn && action === 'REFUSE');
  const [withKey, alone] = [VERBS[action]].flat() as [string, string?];
  const summary = summaryOf(equal);
  return (
    <>
      <Actor root={root} actor={actor} /> {hasKey ? withKey : (alone ?? withKey)}{' '}
      {hasKey && (isOwn ? 'itself' : <KeyLink root={root} id={keyId} name={keyName} />)}
      {summary !== '' && ` · ${summary}`}
      {address !== null && <span class="faint">{` from ${address}`}</span>}
      {action !== 'REFUSE' && changes.some(isTold) && (
        <details>
          <summary>Details</summary>
          <Changes changes={changes} />
        </details>
      )}
    </>
  );
}

function Actor({ root, actor: { kind, keyId, name } }: { root: string; actor: AuditedEntry['actor'] }) {
  if (kind === 'KEY') return <KeyLink root={root} id={keyId} name={name} />;
  if (kind === 'CLI') return <>{name ?? 'The operator'}</>;
  if (kind === 'POLICY' && name === 'people') return <>A sign-in</>;
  return <>{`${kind === 'POLICY' ? 'The policy' : 'A request'}${name === null ? '' : ` (${name})`}`}</>;
}

/** A summary of an entry; empty if the verb is enough. */
function summaryOf(equal: readonly AuditedEntry[]): string {
  const [{ action, changes }] = equal as [AuditedEntry];
  const after = (field: string, of = changes) => valueIn(of.find((change) => change.field === field)?.after);
  if (action === 'CREATE' || action === 'IMPORT') {
    const [roles, permissions] = [after('roles'), after('permissions')].map((value) => (value ?? []) as string[]);
    const count = permissions!.length === 0 ? [] : [formatCount(permissions!.length, 'permission')];
    return [...roles!, ...count].join(', ');
  }
  if (action === 'UPDATE') return changes.map(({ field }) => fieldWords(field)).join(', ');
  if (action !== 'REFUSE') return '';
  const times = equal.reduce((sum, each) => sum + Number(after('count', each.changes) ?? 1), 0);
  const missing = after('missing');
  return [
    wordsOfCode(String(after('reason'))),
    ...(missing === undefined ? [] : [`without ${valueText(missing)}`]),
    ...(times > 1 ? [`${times.toLocaleString('en')} times`] : []),
  ].join(', ');
}

function valueIn(json: string | null | undefined): unknown {
  return JSON.parse(json ?? 'null') ?? undefined;
}

/** A changed field as GraphQL returns it, with both values as JSON. */
export interface Change {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** Changes by field. For a created or deleted key, its values. */
export function Changes({ changes }: { changes: readonly Change[] }) {
  const shown = changes.filter(isTold);
  if (shown.length === 0) return <span class="faint">–</span>;
  return (
    <ul class="changes">
      {shown.map(({ field, before, after }) => (
        <li>
          <span class="faint">{fieldWords(field)}</span>{' '}
          {!isEmpty(before, field) && <del>{changeText(before, field)}</del>}
          {!isEmpty(before, field) && !isEmpty(after, field) && ' → '}
          {!isEmpty(after, field) && <ins>{changeText(after, field)}</ins>}
        </li>
      ))}
    </ul>
  );
}

function isTold({ field, before, after }: Change): boolean {
  return !isEmpty(before, field) || !isEmpty(after, field);
}

function isEmpty(json: string | null, field: string): boolean {
  return json === null || json === 'null' || json === '[]' || (json === 'false' && formOf(field) !== 'boolean');
}

/** `expiresAt` is "expires at". */
function fieldWords(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function changeText(json: string | null, field: string): string {
  const value: unknown = JSON.parse(json ?? 'null');
  const form = formOf(field);
  if (form === 'json') return textOf(value);
  return form === 'text' ? printable(inOneLine(String(value)), MAX_LINE_LENGTH) : valueText(value);
}

function valueText(value: unknown, field = ''): string {
  if (typeof value === 'string')
    return readDate(value) === undefined ? printable(value, MAX_LINE_LENGTH) : exactTime(value);
  if (field === 'grace' && typeof value === 'number') return formatDuration(value);
  if (Array.isArray(value)) return value.map((each) => valueText(each)).join(', ');
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const set = Object.entries(value).filter(([, each]) => each !== null);
  return set.map(([name, each]) => `${printable(fieldWords(name))} ${valueText(each, name)}`).join(', ');
}
