import { PermissionWords } from '../../permission-words.tsx';
import { TextField } from '../../parts/field.tsx';
import { type GrantableRole, permissionsOf } from '../../parts/grants.ts';
import { Done, Empty, Problem } from '../../parts/notice.tsx';
import { Time } from '../../parts/time.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import type { Visit } from '../../visit.tsx';
import type { Request } from './request.ts';

/** What a page says of what was done. */
export interface CodeFormState {
  readonly problem?: string;
  /** What is wrong with the code that was typed. */
  readonly wrongCode?: { readonly code: string; readonly message: string };
  readonly isRefused?: boolean;
}

/** The form for a code, and the open requests. @param requests undefined if they may not be seen */
export function RequestList({
  visit,
  said,
  requests,
  roles = [],
}: {
  visit: Visit;
  said: CodeFormState;
  requests?: readonly Request[] | undefined;
  roles?: readonly GrantableRole[];
}) {
  return (
    <>
      <div class="head">
        <h1>Requests</h1>
      </div>
      {said.isRefused && <Done>The request is refused: the application gets no key.</Done>}
      {said.problem !== undefined && <Problem>{said.problem}</Problem>}
      {visit.may('API_KEY:CREATE_OWN') && <CodeForm visit={visit} said={said} />}
      {requests && (
        <>
          <h2>Open requests</h2>
          {requests.length === 0 ? (
            <NoRequests visit={visit} />
          ) : (
            <RequestTable visit={visit} requests={requests} roles={roles} />
          )}
        </>
      )}
      {!requests && visit.may('API_KEY:CREATE_OWN') && (
        <p class="help">
          <HowToAsk visit={visit} />
        </p>
      )}
    </>
  );
}

function CodeForm({ visit, said: { wrongCode } }: { visit: Visit; said: CodeFormState }) {
  return (
    <form method="post" action={`${visit.root}requests`} class="sheet">
      {wrongCode && <Problem>{wrongCode.message}</Problem>}
      <TextField
        name="code"
        label="The code that an application shows"
        help="Go on only if you have just started it yourself: whoever sends you a code wants your consent for theirs."
        value={wrongCode?.code ?? visit.query('code')}
        placeholder="WDJB-MJHT"
        problem={wrongCode && 'Look at the code again.'}
        autocapitalize="characters"
        spellcheck={false}
        maxlength={100}
        required
      />
      <button class="primary">Show what it asks for</button>
    </form>
  );
}

function RequestTable({
  visit: { root, now },
  requests,
  roles,
}: {
  visit: Visit;
  requests: readonly Request[];
  roles: readonly GrantableRole[];
}) {
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col">Application</th>
          <th scope="col">It asks to</th>
          <th scope="col">From</th>
          <th scope="col">Asked</th>
          <th scope="col">Ends</th>
          <th scope="col">
            <span class="hidden">Refuse</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {requests.map((request) => (
          <tr>
            <th scope="row">
              <strong>{request.clientName}</strong>
              <div>
                <code class="faint">{request.clientId}</code>
              </div>
              {request.status === 'APPROVED' && <div class="faint">agreed, and not fetched yet</div>}
            </th>
            <td data-label="It asks to">
              <Asked request={request} roles={roles} />
            </td>
            <td data-label="From">{request.address ?? <span class="faint">not known</span>}</td>
            <td data-label="Asked">
              <Time at={request.createdAt} now={now} />
            </td>
            <td data-label="Ends">
              <Time at={request.expiresAt} now={now} />
            </td>
            <td>
              <form method="post" action={`${root}requests/refuse`}>
                <OnceOnly />
                <input type="hidden" name="request" value={request.requestId} />
                <button class="danger" aria-label={`Refuse ${request.clientName}`}>
                  Refuse
                </button>
              </form>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Asked({ request, roles }: { request: Request; roles: readonly GrantableRole[] }) {
  const permissions = permissionsOf(request.permissions);
  return (
    <>
      {permissions.length > 0 && <PermissionWords permissions={permissions} />}
      {request.roles.map((role) => (
        <div>
          <code>{role}</code> {roles.find((known) => known.role === role)?.description}
        </div>
      ))}
      {request.keyExpiresIn !== null && <div class="faint">{`for ${request.keyExpiresIn}`}</div>}
    </>
  );
}

function NoRequests({ visit }: { visit: Visit }) {
  return (
    <Empty title="No application asks for a key.">
      <p>
        <HowToAsk visit={visit} />
      </p>
    </Empty>
  );
}

function HowToAsk({ visit: { origin, consent } }: { visit: Visit }) {
  const login = <code>{`svc-api login --server ${origin}`}</code>;
  const others = (
    <>
      an application of <code>svc-api.yaml</code>, by <code>{`${origin}/.well-known/oauth-authorization-server`}</code>
    </>
  );
  if (consent === 'off')
    return (
      <>
        None may: <code>consent</code> in <code>svc-api.yaml</code> is <code>off</code>.
      </>
    );
  if (consent === undefined)
    return (
      <>
        To ask for one: {login}. Other applications may where <code>svc-api.yaml</code> says so, by <code>consent</code>
        .
      </>
    );
  if (consent === 'code') return <>To ask for one: {others}. It opens a page of its own.</>;
  return (
    <>
      To ask for one: {login}, or {others}. It shows a code{consent === 'both' && ', or opens a page of its own'}.
    </>
  );
}
