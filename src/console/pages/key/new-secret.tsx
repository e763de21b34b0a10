import { Done, Warning } from '../../parts/notice.tsx';
import { Secret } from '../../parts/secret.tsx';
import { Time } from '../../parts/time.tsx';
import type { KeyVisit } from './with-key.tsx';

/** A key with a new secret: see `RotatedApiKey`. */
export interface Rotated {
  readonly key: string;
  readonly apiKey: {
    readonly prefix: string;
    readonly rotation: { readonly previousPrefix: string; readonly previousEndsAt: string | null } | null;
  };
  readonly disabled: readonly { readonly id: string; readonly name: string }[];
}

/** The answer to a rotation: the only page that ever shows the new secret. */
export function NewSecretPage({ here, root, rotated }: { here: KeyVisit; root: string; rotated: Rotated }) {
  const { shown, visit, rights } = here;
  const base = `${root}keys/${shown.id}`;
  const { rotation } = rotated.apiKey;
  return (
    <div class="medium">
      <h1>The new secret of {shown.name}</h1>
      <Done>
        The key was rotated. This is its new secret. It is shown here and never again: put it now where it is to be
        kept.
      </Done>
      <Secret of={shown.name} secret={rotated.key} />
      {rotated.disabled.length > 0 && (
        <Warning>Disabled, as it had created them: {rotated.disabled.map(({ name }) => name).join(', ')}</Warning>
      )}
      <h2>What now</h2>
      <ol>
        <li>Put the new secret in place of the previous one, wherever that is used.</li>
        {rotation && (
          <>
            <li>
              Watch on <a href={base}>the page of the key</a> whether <code>{rotation.previousPrefix}</code> is still in
              use.
            </li>
            <li>
              Finish the rotation.{' '}
              {rotation.previousEndsAt === null ? (
                'The grace period begins when the new secret is first used.'
              ) : (
                <>
                  It ends <Time at={rotation.previousEndsAt} now={visit.now} />.
                </>
              )}
            </li>
          </>
        )}
        {rights.isSelf && (
          <li>
            <a href={`${root}sign-in`}>Sign in with the new secret</a>: you are signed in with the previous one.
          </li>
        )}
      </ol>
    </div>
  );
}
