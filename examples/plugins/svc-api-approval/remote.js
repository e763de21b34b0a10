const DEPLOY = '{ id what asker approver }';

export const deploys = async (server) => (await server.ask(`{ deploys ${DEPLOY} }`)).deploys;
export const askForDeploy = async (server, input) =>
  (await server.ask(`mutation ($what: String!) { askForDeploy(what: $what) ${DEPLOY} }`, input)).askForDeploy;
export const approveDeploy = async (server, input) =>
  (await server.ask(`mutation ($id: ID!) { approveDeploy(id: $id) ${DEPLOY} }`, input)).approveDeploy;
