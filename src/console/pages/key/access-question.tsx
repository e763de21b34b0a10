import { OperationFailed } from '../../operations.ts';
import type { KeyStatus } from '../../parts/status.tsx';
import type { KeyVisit } from './with-key.tsx';

const QUERY = `query May($id: ID!, $permission: String!) {
  apiKey(id: $id) { access(permission: $permission) { allowed permission grantedBy status deniedById deniedByName } }
}`;

/** Whether a key may do something, and why: see `ApiKeyAccess`. */
interface Access {
  allowed: boolean;
  permission: string;
  grantedBy: string[];
  status: KeyStatus;
  deniedById: string | null;
  deniedByName: string | null;
}

/** What was asked, and the answer, or what is wrong with the question. */
export interface AccessAnswer {
  readonly text: string;
  readonly access?: Access | undefined;
  readonly problem?: string;
}

/** What the address asks about the key; undefined if it asks nothing. */
export async function askMay({ visit, shown }: KeyVisit): Promise<AccessAnswer | undefined> {
  const text = visit.query('may');
  if (text === undefined) return undefined;
  try {
    const { apiKey } = await visit.ask<{ apiKey: { access: Access } | null }>(QUERY, {
      id: shown.id,
      permission: text,
    });
    return { text, access: apiKey?.access };
  } catch (error) {
    if (error instanceof OperationFailed) return { text, problem: error.message };
    throw error;
  }
}

/** Asks whether a key may do something. */
export function AccessQuestion({ here, asked }: { here: KeyVisit; asked: AccessAnswer | undefined }) {
  const { base, visit } = here;
  const isWrong = asked?.problem !== undefined;
  return (
    <form method="get" action={`${base}#may-it`} id="may-it" class="question">
      <label for="may">May it…?</label>
      <input
        id="may"
        name="may"
        value={asked?.text}
        placeholder="DOCKER:UPDATE_ANY"
        required
        autocapitalize="characters"
        spellcheck={false}
        aria-describedby={asked && 'may-answer'}
        aria-invalid={isWrong ? 'true' : undefined}
      />
      <button>Ask</button>
      {asked && (
        <p id="may-answer" class={isWrong ? 'wrong' : undefined} role={isWrong ? 'alert' : 'status'}>
          {asked.problem ?? (asked.access && <Answer access={asked.access} root={visit.root} />)}
        </p>
      )}
    </form>
  );
}

function Answer({ access, root }: { access: Access; root: string }) {
  const { allowed, permission, grantedBy, status, deniedById, deniedByName } = access;
  const grants = grantedBy.map((grant) => (grant.includes(':') ? grant : `role ${grant}`)).join(' and ');
  if (allowed)
    return (
      <>
        <strong>Yes</strong>, {permission}: by {grants}.
      </>
    );
  return (
    <>
      <strong>No</strong>, not {permission}:{' '}
      {grantedBy.length === 0 ? (
        'none of its grants allows it.'
      ) : deniedById === null ? (
        `${grants} would allow it, but the key is ${status.toLowerCase()}.`
      ) : (
        <>
          {grants} would allow it, but <a href={`${root}keys/${deniedById}`}>{deniedByName ?? 'a parent key'}</a>{' '}
          forbids it.
        </>
      )}
    </>
  );
}
