import { OperationFailed } from '../../operations.ts';
import type { Pages } from '../../page-routes.ts';
import { chosenIn, FIELDS, grantsInputOf, permissionsOf } from '../../parts/grants.ts';
import { Empty, Problem, Warning } from '../../parts/notice.tsx';
import { PermissionGroups } from '../../parts/permission-groups.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import { formatCount } from './key-facts.tsx';
import { askWarning, canNarrow, findLosses, findSuggested } from './narrowing.ts';
import { BackToKey, type KeyVisit, withKey } from './with-key.tsx';

const UPDATE = `mutation Narrow($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { id } }`;

/** Adds the page that takes away from a key what it never used. */
export function addNarrowing(pages: Pages): void {
  pages.get(
    'keys/:id/narrow',
    withKey((here) => showNarrowing(here), 'UPDATE'),
  );
  pages.post(
    'keys/:id/narrow',
    withKey(async (here) => {
      const { visit, shown } = here;
      // Those that were shown: what the key has used since is not among them, and is asked about again.
      const chosen = chosenIn(await visit.form());
      if ([...chosen.roles, ...chosen.permissions].toSorted().join() !== findSuggested(shown).toSorted().join())
        return showNarrowing(here, 'The key has used something else meanwhile. Look again at what it would lose.', 409);
      try {
        await visit.ask(UPDATE, { input: { id: shown.id, ...grantsInputOf(chosen) } });
      } catch (error) {
        if (error instanceof OperationFailed) return showNarrowing(here, error.reason, error.pageStatus);
        throw error;
      }
      return visit.seeOther(`keys/${shown.id}?done=narrowed`);
    }, 'UPDATE'),
  );
}

async function showNarrowing(here: KeyVisit, problem?: string, status = 200): Promise<Response> {
  const { visit, shown } = here;
  const warning = canNarrow(shown) ? await askWarning(visit) : undefined;
  return visit.page(`Narrow ${shown.name}`, <NarrowPage here={here} warning={warning} problem={problem} />, status);
}

function NarrowPage({
  here,
  warning,
  problem,
}: {
  here: KeyVisit;
  warning: string | undefined;
  problem: string | undefined;
}) {
  const { shown, base } = here;
  return (
    <div class="medium">
      <BackToKey here={here} />
      <h1>Narrow it to what it uses</h1>
      {problem !== undefined && <Problem>{problem}</Problem>}
      {canNarrow(shown) ? (
        <>
          {warning !== undefined && <Warning>{warning}</Warning>}
          <Outcome here={here} />
          <form method="post" action={`${base}/narrow`} class="actions">
            <OnceOnly />
            {shown.suggestedRoles.map((role) => (
              <input type="hidden" name={FIELDS.role} value={role} />
            ))}
            {permissionsOf(shown.suggestedPermissions).map((permission) => (
              <input type="hidden" name={FIELDS.permission} value={permission} />
            ))}
            <button class="primary">Take the rest away</button>
            <a class="button" href={base}>
              Cancel
            </a>
          </form>
        </>
      ) : (
        <Empty title="There is nothing to narrow.">
          <p>
            {findSuggested(shown).length === 0
              ? 'The key has used none of its permissions, and needs at least one. Disable or delete it instead.'
              : 'The key has used all that it was granted.'}
          </p>
        </Empty>
      )}
    </div>
  );
}

function Outcome({ here: { shown } }: { here: KeyVisit }) {
  const loss = findLosses(shown);
  const lostRoles = shown.roles.filter((role) => !shown.suggestedRoles.includes(role));
  return (
    <>
      <p class="help">
        Its grants are replaced by the fewest that allow all that it has ever used: permissions, and the roles that it
        has granted to other keys, as only a key that holds a role may grant it. What it has used in the last seconds
        may not be counted yet. You can grant more again later, as far as your key may.
      </p>
      <h2>It keeps</h2>
      <Roles of={shown.suggestedRoles} />
      <PermissionGroups of={shown.suggestedPermissions} />
      <h2>It loses</h2>
      <Roles of={lostRoles} />
      {shown.unknownGrants.length > 0 && <p>{`${shown.unknownGrants.join(', ')}, not declared here any more`}</p>}
      <details open={loss.length <= 10}>
        <summary>{formatCount(permissionsOf(loss).length, 'permission')}</summary>
        <PermissionGroups of={loss} />
      </details>
    </>
  );
}

function Roles({ of: roles }: { of: readonly string[] }) {
  if (roles.length === 0) return null;
  return (
    <p>
      {roles.length === 1 ? 'The role ' : 'The roles '}
      {roles.map((role) => (
        <code>{role} </code>
      ))}
    </p>
  );
}
