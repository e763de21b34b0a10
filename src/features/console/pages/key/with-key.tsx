import { type ApiKey, fixedFields, labelFields, restrictionFields } from '../../../../keys/key/index.ts';
import type { Visit, VisitHandler } from '../../visit.tsx';
import { Message, Panel } from '../../parts/layout.tsx';
import { Fact, formatCount, KeyLink, PREVIOUS_SECRET, Time } from '../../parts/notice.tsx';
import { FieldFacts } from '../../parts/key-texts.tsx';
import { findKey, type KeyAction, Rights, type ShownKey } from './shown-key.ts';

/** Parts of a page about a key. */
export interface KeyVisit {
  readonly visit: Visit;
  readonly shown: ShownKey;
  /** The same key as the rules know it. */
  readonly apiKey: ApiKey;
  readonly rights: Rights;
  /** Link to the page of the key. */
  readonly base: string;
}

const NO_SUCH_KEY = 'This key does not exist, or you are not allowed to see it. It may have been deleted.';

/**
 * Answers with the key in the address, or says that there is none.
 * @param change that the page is for; if it would be refused, the page says so
 */
export function withKey(answer: (here: KeyVisit) => Promise<Response>, change?: KeyAction): VisitHandler {
  return async (visit) => {
    const shown = await findKey(visit);
    const { parts, principal } = visit;
    const isSelf = shown?.id === principal.apiKey.id;
    const apiKey =
      shown && ((await parts.keys.findById(shown.id, principal)) ?? (isSelf ? principal.apiKey : undefined));
    if (!apiKey) return visit.page('Not found', <Message title="Not found" message={NO_SUCH_KEY} />, 404);
    const [changes = []] = await parts.keys.permittedChanges.possibleChanges([apiKey], principal);
    const rights = new Rights(visit, shown.id, changes);
    const here = { visit, shown, apiKey, rights, base: `${visit.root}keys/${shown.id}` };
    const refused = change && here.rights.whyNot(change);
    if (refused !== undefined) return visit.page('Not allowed', <NotAllowed here={here} reason={refused} />, 403);
    return answer(here);
  };
}

function NotAllowed({ here, reason }: { here: KeyVisit; reason: string }) {
  return (
    <Panel width="narrow" title="Not allowed" back={{ to: here.base, name: here.shown.name }}>
      <p>{here.rights.isPrevious ? PREVIOUS_SECRET : reason}</p>
    </Panel>
  );
}

/** The page shows these fields in its own way. */
const { description: _description, owner: _owner, tags: _tags, ...otherLabels } = labelFields;

/** The facts about a key. @param creatorName null if it may not be read */
export function KeyFacts({ here, creatorName }: { here: KeyVisit; creatorName: string | null }) {
  const { shown, visit } = here;
  const { now, root } = visit;
  return (
    <dl class="facts">
      {shown.person ? (
        <Fact name="Person">
          {shown.person.name} <span class="faint">{`via ${shown.person.issuer}`}</span>
        </Fact>
      ) : (
        <Fact name="Secret">
          <code>{shown.prefix}</code>
        </Fact>
      )}
      {shown.answering !== null && !shown.person && (
        <Fact name="Owner">
          <a href={`${root}keys?by=${encodeURIComponent(shown.answering)}`}>{shown.answering}</a>
          {shown.owner === null && <span class="faint"> (owner of a parent key)</span>}
        </Fact>
      )}
      {shown.tags.length > 0 && (
        <Fact name="Tags">
          {shown.tags.map((tag) => (
            <>
              <a href={`${root}keys?tag=${encodeURIComponent(tag)}`}>{tag}</a>{' '}
            </>
          ))}
        </Fact>
      )}
      <FieldFacts table={otherLabels} of={shown} onlyGiven />
      <Fact name="Created">
        <Time at={shown.createdAt} now={now} />
        {shown.person ? ', at the first sign-in' : ' by '}
        {!shown.person &&
          (shown.createdBy === null ? 'the operator' : <KeyLink root={root} id={shown.createdBy} name={creatorName} />)}
      </Fact>
      <Fact name="Expires">
        <Time at={shown.expiresAt} now={now} />
      </Fact>
      {shown.disabledAt !== null && (
        <Fact name="Disabled">
          <Time at={shown.disabledAt} now={now} />
        </Fact>
      )}
      <Fact name="Last used">
        <Time at={shown.lastUsedAt} now={now} />
        {shown.uses > 0 && <span class="faint">{`, ${formatCount(shown.uses, 'request')} in total`}</span>}
      </Fact>
      <FieldFacts table={restrictionFields} of={shown} />
      <FieldFacts table={fixedFields} of={shown} onlyGiven />
      {shown.budgets.length > 0 && (
        <Fact name="Requests left">{shown.budgets.map(({ limit, left }) => `${left} of ${limit}`).join(', ')}</Fact>
      )}
      {shown.managed && (
        <Fact name="Managed">by svc-api apply: its next run may undo changes made here, or delete the key</Fact>
      )}
    </dl>
  );
}
