import { MAX_DESCRIPTION_LENGTH } from '../../keys/key/description.ts';
import { printable } from '../../keys/text.ts';
import { formatDuration, readDate } from '../../keys/time.ts';
import { exactTime, Time } from './notice.tsx';

/** What is shown of an entry, as a selection of GraphQL. */
export const AUDITED_FIELDS =
  'number at actor { kind keyId name } action keyId keyName address changes { field before after }';

/** An entry of the audit log, see `AuditEntry`. */
export interface AuditedEntry {
  number: number;
  at: string;
  actor: { kind: 'CLI' | 'KEY' | 'REQUEST' | 'POLICY'; keyId: string | null; name: string | null };
  action: string;
  keyId: string | null;
  keyName: string | null;
  address: string | null;
  changes: Change[];
}

const ACTORS = { CLI: 'user', KEY: 'key', REQUEST: 'request', POLICY: 'policy' } as const;

/** Entries of the audit log as a table. @param ofOneKey whether all are of the key whose page it is */
export function AuditEntries({
  root,
  now,
  entries,
  ofOneKey = false,
}: {
  root: string;
  now: number;
  entries: readonly AuditedEntry[];
  ofOneKey?: boolean;
}) {
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Who</th>
          <th scope="col">What</th>
          {!ofOneKey && <th scope="col">Key</th>}
          <th scope="col">Changes</th>
        </tr>
      </thead>
      <tbody>
        {entries.map(({ number, at, actor, action, keyId, keyName, address, changes }) => (
          <tr>
            <th scope="row" title={`Entry ${number}`}>
              <Time at={at} now={now} />
            </th>
            <td data-label="Who">
              <span class="faint">{ACTORS[actor.kind]}</span> <KeyLink root={root} id={actor.keyId} name={actor.name} />
              {address !== null && <span class="faint">{` from ${address}`}</span>}
            </td>
            <td data-label="What">{wordsOf(action)}</td>
            {!ofOneKey && (
              <td data-label="Key">
                <KeyLink root={root} id={keyId} name={keyName} />
              </td>
            )}
            <td data-label="Changes">
              <Changes changes={changes} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function KeyLink({ root, id, name }: { root: string; id: string | null; name: string | null }) {
  if (id === null) return name ?? <span class="faint">–</span>;
  return <a href={`${root}keys/${id}`}>{name ?? <code>{id.slice(0, 8)}</code>}</a>;
}

/** `CONSENT_EXCHANGE` is "consent exchange". */
export function wordsOf(action: string): string {
  return action.toLowerCase().replaceAll('_', ' ');
}

/** A field that was changed, as GraphQL has it: both values as JSON. */
export interface Change {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** What was changed, field by field. Of a key that was created or deleted, what it had. */
export function Changes({ changes }: { changes: readonly Change[] }) {
  const shown = changes.filter(({ before, after }) => !isEmpty(before) || !isEmpty(after));
  if (shown.length === 0) return <span class="faint">–</span>;
  return (
    <ul class="changes">
      {shown.map(({ field, before, after }) => (
        <li>
          <span class="faint">{fieldWords(field)}</span> {!isEmpty(before) && <del>{textOf(before)}</del>}
          {!isEmpty(before) && !isEmpty(after) && ' → '}
          {!isEmpty(after) && <ins>{textOf(after)}</ins>}
        </li>
      ))}
    </ul>
  );
}

function isEmpty(json: string | null): boolean {
  return json === null || json === 'null' || json === '[]' || json === 'false';
}

/** `expiresAt` is "expires at". */
function fieldWords(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function textOf(json: string | null): string {
  return valueText(JSON.parse(json ?? 'null'));
}

function valueText(value: unknown, field = ''): string {
  if (typeof value === 'string')
    return readDate(value) === undefined ? printable(value, MAX_DESCRIPTION_LENGTH) : exactTime(value);
  if (field === 'grace' && typeof value === 'number') return formatDuration(value);
  if (Array.isArray(value)) return value.map((each) => valueText(each)).join(', ');
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const set = Object.entries(value).filter(([, each]) => each !== null);
  return set.map(([name, each]) => `${fieldWords(name)} ${valueText(each, name)}`).join(', ');
}
