// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Calls a contract many times in one transaction, all or nothing. No constructor, so that its code can be placed at any address.
contract Multicall {
    function callAll(address target, bytes[] calldata calls) external {
        for (uint256 i = 0; i < calls.length; i++) {
            (bool isDone,) = target.call(calls[i]);
            require(isDone, "a call failed");
        }
    }
}
