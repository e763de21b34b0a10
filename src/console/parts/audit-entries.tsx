import { type Change, Changes } from './changes.tsx';
import { Time } from './time.tsx';

/** What is shown of an entry, as a selection of GraphQL. */
export const AUDITED_FIELDS =
  'number at actor { kind keyId name } action keyId keyName address changes { field before after }';

/** An entry of the audit log, see `AuditEntry`. */
export interface AuditedEntry {
  number: number;
  at: string;
  actor: { kind: 'CLI' | 'KEY' | 'REQUEST'; keyId: string | null; name: string | null };
  action: string;
  keyId: string | null;
  keyName: string | null;
  address: string | null;
  changes: Change[];
}

const ACTORS = { CLI: 'user', KEY: 'key', REQUEST: 'request' } as const;

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
