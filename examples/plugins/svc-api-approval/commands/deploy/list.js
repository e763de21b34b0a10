import { commandOf } from '../../command.js';

export default commandOf('deploys', 'List deploys that were asked for.');
