import { Warning } from '../../parts/notice.tsx';
import { Time } from '../../parts/time.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import type { ShownRotation } from './shown-key.ts';
import type { KeyVisit } from './with-key.tsx';

/** That a key has two secrets that work, and where that is ended. */
export function RotationNotice({ here }: { here: KeyVisit }) {
  const { shown, rights, base } = here;
  if (!shown.rotation) return null;
  return (
    <Warning>
      A rotation is under way: two secrets work. <PreviousSecret here={here} rotation={shown.rotation} />{' '}
      {rights.may('FINISH_ROTATION') && (
        <a href={`${base}/rotation`}>{rights.may('ROLL_BACK_ROTATION') ? 'Finish it or roll it back' : 'Finish it'}</a>
      )}
    </Warning>
  );
}

/** The previous secret of a key: until when it works, and whether it is in use. */
function PreviousSecret({ here: { visit }, rotation }: { here: KeyVisit; rotation: ShownRotation }) {
  const { previousPrefix, previousEndsAt, previousLastUsedAt, startedAt } = rotation;
  return (
    <>
      The previous secret, <code>{previousPrefix}</code>,{' '}
      {previousEndsAt === null ? (
        'works until the new one is first used, and then for its grace period'
      ) : (
        <>
          ends <Time at={previousEndsAt} now={visit.now} />
        </>
      )}
      {'. '}
      {previousLastUsedAt === null ? (
        <>
          It was not used since the rotation began <Time at={startedAt} now={visit.now} />.
        </>
      ) : (
        <strong>
          It is still in use: last <Time at={previousLastUsedAt} now={visit.now} />.
        </strong>
      )}
    </>
  );
}

/** What can be done about a rotation that is under way, and what each means. */
export function RotationSteps({ here, rotation }: { here: KeyVisit; rotation: ShownRotation }) {
  const { shown, rights, base } = here;
  const isInUse = rotation.previousLastUsedAt !== null;
  return (
    <>
      <Warning>
        <PreviousSecret here={here} rotation={rotation} />
      </Warning>
      {rotation.previousEndsAt === null && (
        <Step
          action={`${base}/rotation/activate`}
          button="Begin the grace period"
          meaning="The new secret has arrived where it belongs. The previous one works until its grace period is over."
        />
      )}
      <Step
        action={`${base}/rotation/finish`}
        button="Finish now"
        isDangerous={isInUse}
        meaning={
          `The previous secret, ${rotation.previousPrefix}, stops working at once; ${shown.prefix} stays. ` +
          (isInUse ? 'What still uses the previous one is refused from then on.' : 'Nothing has used it since.')
        }
      />
      {rights.may('ROLL_BACK_ROTATION') && (
        <Step
          action={`${base}/rotation/roll-back`}
          button="Roll back"
          isDangerous
          meaning={
            `The new secret, ${shown.prefix}, stops working at once; ${rotation.previousPrefix} stays. ` +
            'For a new secret that was lost, or that got into wrong hands.'
          }
        />
      )}
    </>
  );
}

function Step({
  action,
  button,
  meaning,
  isDangerous = false,
}: {
  action: string;
  button: string;
  meaning: string;
  isDangerous?: boolean;
}) {
  return (
    <form method="post" action={action} class="step">
      <OnceOnly />
      <button class={isDangerous ? 'danger' : undefined}>{button}</button>
      <p>{meaning}</p>
    </form>
  );
}
