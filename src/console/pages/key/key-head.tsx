import { MAX_DESCRIPTION_LENGTH } from '../../../keys/key/index.ts';
import { printable } from '../../../keys/basics/index.ts';
import { Status } from '../../parts/status.tsx';
import type { KeyVisit } from './with-key.tsx';

/** What a key is called, how it stands, and what can be done to it. */
export function KeyHead({ here }: { here: KeyVisit }) {
  const { shown, rights, base, visit } = here;
  return (
    <>
      <div class="head">
        <h1>
          {shown.name} <Status is={shown.status} />
        </h1>
        <div class="actions">
          {rights.may('UPDATE') && (
            <a class="button" href={`${base}/edit`}>
              Edit
            </a>
          )}
          {rights.may(shown.rotation ? 'FINISH_ROTATION' : 'ROTATE') && (
            <a class="button" href={`${base}/rotation`}>
              {shown.rotation ? 'Rotation' : 'Rotate'}
            </a>
          )}
          <Switch here={here} />
          {visit.mayCreate && (
            <a class="button" href={`${visit.root}keys/new?from=${shown.id}`}>
              Create one like it
            </a>
          )}
          {rights.may('CONTAIN') && (
            <a class="button danger" href={`${base}/contain`}>
              Contain
            </a>
          )}
          {rights.may('DELETE') && (
            <a class="button danger" href={`${base}/delete`}>
              Delete
            </a>
          )}
        </div>
      </div>
      {shown.disabledAt !== null && rights.may('UPDATE') && !rights.may('ENABLE') && (
        <p class="help">You cannot enable it: {rights.whyNot('ENABLE')}</p>
      )}
      {shown.description !== null && <p class="description">{printable(shown.description, MAX_DESCRIPTION_LENGTH)}</p>}
    </>
  );
}

function Switch({ here: { shown, rights, base } }: { here: KeyVisit }) {
  if (shown.disabledAt !== null)
    return rights.may('ENABLE') ? (
      <form method="post" action={`${base}/enable`}>
        <button>Enable</button>
      </form>
    ) : null;
  if (!rights.may('DISABLE')) return null;
  // It is asked about where they cannot enable it again.
  if (rights.endsSession || !rights.may('ENABLE'))
    return (
      <a class="button" href={`${base}/disable`}>
        Disable
      </a>
    );
  return (
    <form method="post" action={`${base}/disable`}>
      <button>Disable</button>
    </form>
  );
}
