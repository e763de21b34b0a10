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
          {rights.update && (
            <a class="button" href={`${base}/edit`}>
              Edit
            </a>
          )}
          {rights.widen && (
            <a class="button" href={`${base}/rotation`}>
              {shown.rotation ? 'Rotation' : 'Rotate'}
            </a>
          )}
          <Switch here={here} />
          {!rights.isPrevious && visit.may('API_KEY:CREATE_OWN') && (
            <a class="button" href={`${visit.root}keys/new?from=${shown.id}`}>
              Create one like it
            </a>
          )}
          {rights.delete && (
            <a class="button danger" href={`${base}/delete`}>
              Delete
            </a>
          )}
        </div>
      </div>
      {shown.description !== null && <p class="description">{shown.description}</p>}
    </>
  );
}

function Switch({ here: { shown, rights, base } }: { here: KeyVisit }) {
  if (shown.disabledAt !== null)
    return rights.widen ? (
      <form method="post" action={`${base}/enable`}>
        <button>Enable</button>
      </form>
    ) : null;
  if (!rights.update) return null;
  // It is asked about: whoever disables the key that they have signed in with cannot enable it again.
  if (rights.isSelf)
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
