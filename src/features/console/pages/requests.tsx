import type { Child } from 'hono/jsx';
import { OAUTH_PATHS } from '../../consent/oauth/paths.ts';
import type { ResourceActions } from '../../../keys/permissions/index.ts';
import { OperationFailed, orFailed } from '../operations.ts';
import type { Pages, Visit } from '../visit.tsx';
import { permissionsOf } from '../parts/grants.ts';
import { Done, Empty, Problem, Time } from '../parts/notice.tsx';
import { GrantWords } from '../permission-words.tsx';
import { OnceOnly } from '../sent-form.tsx';
import { CodeForm } from './consent.tsx';

/** A request of an application for a key. */
export interface Request {
  readonly requestId: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly roles: readonly string[];
  readonly permissions: readonly ResourceActions[];
  readonly keyExpiresIn: string | null;
  readonly address: string | null;
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly status: 'PENDING' | 'APPROVED' | 'DENIED';
}

const LIST = `query Requests($first: Int!) { consentRequests(first: $first) {
  requestId clientId clientName roles permissions { resource actions } keyExpiresIn address createdAt expiresAt status
} }`;
const REFUSE = `mutation Refuse($requestId: ID!) { denyConsentRequest(requestId: $requestId) { requestId } }`;

const MAX_SHOWN = 100;

/**
 * Adds the page that lists requests of applications. Someone with the code of a request decides on another page, which
 * also works without a session: see `addConsentPages`.
 */
export function addRequests(pages: Pages): void {
  pages.get('requests', (visit) => {
    const isDenied = visit.query('done') === 'refused';
    return show(visit, isDenied && <Done>Request denied. The application gets no key.</Done>);
  });
  pages.post('requests/refuse', async (visit) => {
    const form = await visit.form();
    const refused = await orFailed(visit.ask(REFUSE, { requestId: form.get('request') ?? '' }));
    if (refused instanceof OperationFailed)
      return show(visit, <Problem>{refused.message}</Problem>, refused.pageStatus);
    return visit.seeOther('requests?done=refused');
  });
}

/** Shows the form for a code, and the open requests to people who can see them. */
async function show(visit: Visit, notice: Child, status = 200): Promise<Response> {
  if (!visit.may('API_KEY:CREATE_OWN'))
    return visit.page(
      'Approvals',
      <>
        <h1>Approvals</h1>
        <Problem>Your key cannot approve requests: it lacks API_KEY:CREATE_OWN.</Problem>
      </>,
      403,
    );
  const requests = visit.may('API_KEY:CREATE_ANY') ? await visit.ask<Request[]>(LIST, { first: MAX_SHOWN }) : undefined;
  const { consent } = visit.parts;
  return visit.page(
    'Approvals',
    <>
      <h1>Approvals</h1>
      {notice}
      {consent !== 'off' && consent !== 'code' && (
        <CodeForm action={`${visit.root}..${OAUTH_PATHS.device}`} code={visit.query('code')} />
      )}
      {requests && <h2>Open requests</h2>}
      {requests && requests.length > 0 && <RequestTable visit={visit} requests={requests} />}
      {requests?.length === 0 && (
        <Empty title="No open requests">
          <p>
            <HowToAsk visit={visit} />
          </p>
        </Empty>
      )}
      {!requests && (
        <p class="help">
          <HowToAsk visit={visit} />
        </p>
      )}
    </>,
    status,
  );
}

function RequestTable({ visit: { root, now }, requests }: { visit: Visit; requests: readonly Request[] }) {
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col">Application</th>
          <th scope="col">Access</th>
          <th scope="col">From</th>
          <th scope="col">Requested</th>
          <th scope="col">Expires</th>
          <th scope="col">
            <span class="hidden">Deny</span>
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
              {request.status === 'APPROVED' && <div class="faint">approved, not fetched yet</div>}
            </th>
            <td data-label="Access">
              <GrantWords roles={request.roles} permissions={permissionsOf(request.permissions)}>
                {request.keyExpiresIn !== null && <li class="faint">{`for ${request.keyExpiresIn}`}</li>}
              </GrantWords>
            </td>
            <td data-label="From">{request.address ?? <span class="faint">not known</span>}</td>
            <td data-label="Requested">
              <Time at={request.createdAt} now={now} />
            </td>
            <td data-label="Expires">
              <Time at={request.expiresAt} now={now} />
            </td>
            <td>
              <form method="post" action={`${root}requests/refuse`}>
                <OnceOnly />
                <input type="hidden" name="request" value={request.requestId} />
                <button class="danger" aria-label={`Deny ${request.clientName}`}>
                  Deny
                </button>
              </form>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function HowToAsk({ visit: { origin, parts } }: { visit: Visit }) {
  const { consent, commands } = parts;
  const login = <code>{`${commands.login} --server ${origin}`}</code>;
  const others = (
    <>
      connects an application listed in <code>svc-api.yaml</code> (
      <code>{`${origin}/.well-known/oauth-authorization-server`}</code>)
    </>
  );
  if (consent === 'off')
    return (
      <>
        Requests are turned off: <code>consent</code> in <code>svc-api.yaml</code> is <code>off</code>.
      </>
    );
  if (consent === undefined)
    return (
      <>
        Requests appear here when someone runs {login}. To let other applications connect, set <code>consent</code> in{' '}
        <code>svc-api.yaml</code>.
      </>
    );
  if (consent === 'code') return <>Requests appear here when someone {others}. It opens an approval page.</>;
  return (
    <>
      Requests appear here when someone runs {login}, or {others}. It shows a code{' '}
      {consent === 'both' && ', or opens an approval page'}.
    </>
  );
}
