import { OperationFailed } from '../../operations.ts';
import type { Pages } from '../../page-routes.ts';
import type { Visit } from '../../visit.tsx';
import { askRoles } from '../grantable.ts';
import { addDecisions } from './decisions.tsx';
import { RequestList, type CodeFormState } from './list.tsx';
import { type Request, REQUEST_FIELDS } from './request.ts';

const LIST = `query Requests($first: Int!) { consentRequests(first: $first) { ${REQUEST_FIELDS} } }`;
const REFUSE = `mutation Refuse($requestId: ID!) { denyConsentRequest(requestId: $requestId) { requestId } }`;

const MAX_SHOWN = 100;

/** Adds the pages on which people decide what applications get that ask for keys. */
export function addRequests(pages: Pages): void {
  pages.get('requests', (visit) => show(visit, { isRefused: visit.query('done') === 'refused' }));
  pages.post('requests/refuse', async (visit) => {
    const form = await visit.form();
    try {
      await visit.ask(REFUSE, { requestId: form.get('request') ?? '' });
    } catch (error) {
      if (!(error instanceof OperationFailed)) throw error;
      return show(visit, { problem: error.message }, error.pageStatus);
    }
    return visit.seeOther('requests?done=refused');
  });
  addDecisions(pages, show);
}

/** Shows the list, and the form for a code. */
async function show(visit: Visit, said: CodeFormState, status = 200): Promise<Response> {
  if (!visit.may('API_KEY:CREATE_OWN'))
    return visit.page('Requests', <RequestList visit={visit} said={{ problem: MAY_NOT }} />, 403);
  const requests = visit.may('API_KEY:CREATE_ANY')
    ? (await visit.ask<{ consentRequests: Request[] }>(LIST, { first: MAX_SHOWN })).consentRequests
    : undefined;
  const roles = requests?.some((request) => request.roles.length > 0) ? await askRoles(visit) : [];
  return visit.page('Requests', <RequestList visit={visit} said={said} requests={requests} roles={roles} />, status);
}

const MAY_NOT = 'Your key may not decide what applications get: that takes API_KEY:CREATE_OWN.';
